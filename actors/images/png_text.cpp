#include "actors/images/png_text.h"

#include <zlib.h>

namespace troupe::codecs {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // as Pillow takes

/// What stands before the next zero byte, which is taken off `rest` with it; nothing when there is none.
std::optional<std::string_view> next_word(std::string_view& rest) {
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return word;
}

std::optional<std::string> inflated(std::string_view data) {
  std::string out(kMostBytes, '\0');
  uLongf size = out.size();
  if (uncompress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
                 data.size()) != Z_OK)
    return std::nullopt;
  out.resize(size);
  return out;
}

int digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

}  // namespace

std::optional<PngText> png_text(std::string_view type, std::string_view body, bool (*is_wanted)(std::string_view key)) {
  if (type != "tEXt" && type != "zTXt" && type != "iTXt") return std::nullopt;
  const auto key = next_word(body);
  if (!key || !is_wanted(*key)) return std::nullopt;
  bool deflated = type == "zTXt";
  if (type != "tEXt") {
    const size_t head = deflated ? 1 : 2;                                // iTXt says first whether it is deflated
    if (body.size() < head || body[head - 1] != 0) return std::nullopt;  // another method than zlib's
    deflated = deflated || body[0] != 0;
    body.remove_prefix(head);
  }
  if (type == "iTXt" && !(next_word(body) && next_word(body))) return std::nullopt;  // language and translated key
  if (!deflated)
    return body.size() <= kMostBytes ? PngText{std::string(*key), std::string(body)} : std::optional<PngText>();
  auto text = inflated(body);
  return text ? PngText{std::string(*key), std::move(*text)} : std::optional<PngText>();
}

std::string raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  std::string out;
  int high = -1;
  for (const char c : text) {
    if (high < 0 && (c == ' ' || (c >= '\t' && c <= '\r'))) continue;
    if (c == '\n') continue;  // Pillow joins the lines before it looks
    const int value = digit(c);
    if (value < 0) return "";
    if (high >= 0) out += static_cast<char>(high << 4 | value);
    high = high >= 0 ? -1 : value;
  }
  return high < 0 ? out : "";
}

}  // namespace troupe::codecs
