#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` with every control character and what turns a line's direction spelt out ("\x1b", "\u202e"), so that what a
/// file holds cannot move a terminal's cursor, cut a message short or show it in another order. Newlines and tabs stay
/// with `keep_lines`.
std::string printable(std::string_view text, bool keep_lines);

}  // namespace troupe
