#include "base/printable_text.h"

#include <cstdio>

namespace troupe {
namespace {

/// The number of a character that turns the direction of a line (U+202A to U+202E, U+2066 to U+2069), whose UTF-8 is
/// three bytes from `at` on; 0 for another.
unsigned direction_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  if (byte(0) != 0xE2) return 0;
  const unsigned number = 0x2000 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  const bool embeds = byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE;
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
  return embeds || isolates ? number : 0;
}

/// Bytes of the character of UTF-8 at `at`; 0 where there is none.
size_t character_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first < 0xE0   ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Longer than need be, halves of a pair, and beyond the last one.
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return wrong ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool line = byte == '\n' || byte == '\t';
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    char spelt[16];
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F in UTF-8: some terminals obey them
      std::snprintf(spelt, sizeof spelt, "\\u%04x", next);
      out += spelt;
      ++i;
    } else if (const unsigned direction = direction_at(text, i); direction != 0) {
      std::snprintf(spelt, sizeof spelt, "\\u%04x", direction);
      out += spelt;
      i += 2;
    } else if (((byte < 0x20 || byte == 0x7F) && !(line && keep_lines)) || character_bytes(text, i) == 0) {
      std::snprintf(spelt, sizeof spelt, "\\x%02x", static_cast<unsigned>(byte));
      out += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : spelt;
    } else {
      const size_t bytes = character_bytes(text, i);
      out += text.substr(i, bytes);
      i += bytes - 1;
    }
  }
  return out;
}

}  // namespace troupe
