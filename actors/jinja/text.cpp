#include "actors/jinja/text.h"

#include <algorithm>

namespace troupe::jinja {
namespace {

size_t bytes_of(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

char32_t code_point(std::string_view c) {
  const auto low = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(c[i]) & 0x3F); };
  const auto lead = static_cast<unsigned char>(c[0]);
  if (c.size() == 1) return lead;
  if (c.size() == 2) return (static_cast<char32_t>(lead & 0x1F) << 6) | low(1);
  if (c.size() == 3) return (static_cast<char32_t>(lead & 0x0F) << 12) | (low(1) << 6) | low(2);
  return (static_cast<char32_t>(lead & 0x07) << 18) | (low(1) << 12) | (low(2) << 6) | low(3);
}

}  // namespace

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    const size_t n = std::min(bytes_of(static_cast<unsigned char>(text[at])), text.size() - at);
    out.push_back(text.substr(at, n));
    at += n;
  }
  return out;
}

bool is_space(std::string_view character) {
  const char32_t c = code_point(character);
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view stripped(std::string_view text, const std::string* chars, bool left, bool right) {
  const auto all = split_characters(text);
  const auto set = chars != nullptr ? split_characters(*chars) : std::vector<std::string_view>();
  const auto goes = [&](std::string_view c) {
    return chars == nullptr ? is_space(c) : std::find(set.begin(), set.end(), c) != set.end();
  };
  size_t first = 0, end = all.size();
  while (left && first < end && goes(all[first])) text.remove_prefix(all[first++].size());
  while (right && end > first && goes(all[end - 1])) text.remove_suffix(all[--end].size());
  return text;
}

void append_utf8(std::string& out, char32_t c) {
  const auto add = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | (c >> 6));
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | (c >> 12));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | (c >> 18));
    add(0x80 | ((c >> 12) & 0x3F));
    add(0x80 | ((c >> 6) & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

std::string shown(std::string_view text) {
  std::string out = "'";
  size_t bytes = 0;
  for (const std::string_view c : split_characters(text)) {
    if (bytes += c.size(); bytes > 60) return out + "...'";
    out += c == "\n" ? std::string_view("\\n") : c;
  }
  return out + "'";
}

}  // namespace troupe::jinja
