#include "actors/jinja/text.h"

#include <algorithm>
#include <set>

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

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

template <typename Goes>
std::string_view without_ends(std::string_view text, bool left, bool right, const Goes& goes) {
  while (left && !text.empty()) {
    const std::string_view c = character_at(text, 0);
    if (!goes(c)) break;
    text.remove_prefix(c.size());
  }
  while (right && !text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && !begins_character(text[last])) --last;
    if (!goes(text.substr(last))) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

}  // namespace

std::string_view character_at(std::string_view text, size_t byte) {
  return text.substr(byte, bytes_of(static_cast<unsigned char>(text[byte])));
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size(); at += out.back().size()) out.push_back(character_at(text, at));
  return out;
}

bool is_space(std::string_view character) {
  const char32_t c = code_point(character);
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view stripped(std::string_view text, bool left, bool right) {
  return without_ends(text, left, right, is_space);
}

Result<std::string_view> stripped_of(std::string_view text, std::string_view chars, bool left, bool right,
                                     Budget& budget) {
  TROUPE_RETURN_IF_ERROR(budget.items(chars.size()));
  TROUPE_RETURN_IF_ERROR(budget.bytes(text.size() * 16));
  const auto all = split_characters(chars);
  const std::set<std::string_view> set(all.begin(), all.end());
  return without_ends(text, left, right, [&](std::string_view c) { return set.count(c) > 0; });
}

Result<size_t> find_text(std::string_view text, std::string_view what, size_t from, Budget& budget) {
  if (what.empty()) return from;
  for (size_t at = from;; ++at) {
    const size_t next = text.find(what[0], at);
    TROUPE_RETURN_IF_ERROR(budget.bytes(std::min(next, text.size()) - at + 4));
    if (next == std::string_view::npos || what.size() > text.size() - next) return std::string_view::npos;
    const auto same = std::mismatch(what.begin(), what.end(), text.begin() + static_cast<std::ptrdiff_t>(next));
    TROUPE_RETURN_IF_ERROR(budget.bytes(static_cast<size_t>(same.first - what.begin())));
    if (same.first == what.end()) return next;
    at = next;
  }
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
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = character_at(text, at);
    if (at += c.size(); at > 60) return out + "...'";
    out += c == "\n" ? std::string_view("\\n") : c;
  }
  return out + "'";
}

}  // namespace troupe::jinja
