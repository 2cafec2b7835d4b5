#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::jinja {

/// Python's view of a string, on well-formed UTF-8: characters are code points, blanks are what str.isspace says.
std::vector<std::string_view> split_characters(std::string_view text);
bool is_space(std::string_view character);
/// The text without the characters of `chars` at its left and right ends; null `chars`: without blanks.
std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right);
void append_utf8(std::string& out, char32_t character);
/// A piece for a message: in quotes, newlines as \n, at most about 60 bytes.
std::string shown(std::string_view text);

}  // namespace troupe::jinja
