#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/jinja/budget.h"

namespace troupe::jinja {

/// Python's view of a string, on well-formed UTF-8: characters are code points, blanks are what str.isspace says.

/// The character that begins at a byte of the text.
std::string_view character_at(std::string_view text, size_t byte);
size_t count_characters(std::string_view text);
std::vector<std::string_view> split_characters(std::string_view text);
bool is_space(std::string_view character);
/// The text without the blanks at its left and right ends. Cost: the blanks.
std::string_view stripped(std::string_view text, bool left, bool right);
/// The text without the characters of `chars` at its ends.
Result<std::string_view> stripped_of(std::string_view text, std::string_view chars, bool left, bool right,
                                     Budget& budget);
/// Where `what` begins in the text from byte `from` on, or npos. Every byte that is compared is taken from the budget.
Result<size_t> find_text(std::string_view text, std::string_view what, size_t from, Budget& budget);
void append_utf8(std::string& out, char32_t character);
/// A piece for a message: in quotes, newlines as \n, at most about 60 bytes.
std::string shown(std::string_view text);

}  // namespace troupe::jinja
