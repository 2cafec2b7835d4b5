#include "actors/images/png_text.h"

#include <zlib.h>

#include <optional>

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

std::string inflated(std::string_view data) {
  std::string out(kMostBytes, '\0');
  uLongf size = out.size();
  const auto* from = reinterpret_cast<const Bytef*>(data.data());
  const bool whole = uncompress(reinterpret_cast<Bytef*>(out.data()), &size, from, data.size()) == Z_OK;
  out.resize(whole ? size : 0);
  return out;
}

int digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

}  // namespace

std::string_view png_text_key(const PngChunk& chunk) {
  if (chunk.type != "tEXt" && chunk.type != "zTXt" && chunk.type != "iTXt") return {};
  std::string_view rest = chunk.body;
  return next_word(rest).value_or(std::string_view());
}

std::string png_text(const PngChunk& chunk) {
  std::string_view rest = chunk.body;
  if (!next_word(rest)) return "";
  bool deflated = chunk.type == "zTXt";
  if (chunk.type != "tEXt") {
    const size_t head = deflated ? 1 : 2;                      // iTXt says first whether it is deflated
    if (rest.size() < head || rest[head - 1] != 0) return "";  // another method than zlib's
    deflated = deflated || rest[0] != 0;
    rest.remove_prefix(head);
  }
  if (chunk.type == "iTXt" && !(next_word(rest) && next_word(rest))) return "";  // language and translated key
  if (deflated) return inflated(rest);
  return rest.size() <= kMostBytes ? std::string(rest) : "";
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
