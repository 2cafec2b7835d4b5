#include "base/printable_text.h"

#include <cstdio>

#include "base/utf8.h"

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
    } else if (((byte < 0x20 || byte == 0x7F) && !(line && keep_lines)) || utf8_length(text.substr(i)) == 0) {
      std::snprintf(spelt, sizeof spelt, "\\x%02x", static_cast<unsigned>(byte));
      out += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : spelt;
    } else {
      const size_t bytes = utf8_length(text.substr(i));
      out += text.substr(i, bytes);
      i += bytes - 1;
    }
  }
  return out;
}

}  // namespace troupe
