#include "base/printable_text.h"

#include <cstdio>

namespace troupe {

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool line = byte == '\n' || byte == '\t';
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    char spelt[8];
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F in UTF-8: some terminals obey them
      std::snprintf(spelt, sizeof spelt, "\\u%04x", next);
      out += spelt;
      ++i;
    } else if ((byte < 0x20 || byte == 0x7F) && !(line && keep_lines)) {
      std::snprintf(spelt, sizeof spelt, "\\x%02x", static_cast<unsigned>(byte));
      out += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : spelt;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace troupe
