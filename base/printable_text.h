#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` with every control character spelt out ("\x1b"), so that what a file holds cannot move a terminal's cursor or
/// cut a message short. Newlines and tabs stay with `keep_lines`.
std::string printable(std::string_view text, bool keep_lines);

}  // namespace troupe
