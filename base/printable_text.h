#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `text` with every control character, what turns a line's direction and bytes that are no UTF-8 spelt out ("\x1b",
/// "\u202e", "\xe9"), so that what a file holds cannot move a terminal's cursor, cut a message short, show it in
/// another order or make a page of it unreadable. Newlines and tabs stay with `keep_lines`.
std::string printable(std::string_view text, bool keep_lines);

}  // namespace troupe
