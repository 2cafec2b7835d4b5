#include "actors/sources/inline_data.h"

#include <openssl/evp.h>

#include <limits>

namespace troupe {
namespace {

constexpr std::string_view kValid = "valid: data:TYPE;base64,... with TYPE as image/png or video/mp4";

}  // namespace

bool is_inline_data(std::string_view path) { return path.starts_with("data:"); }

std::string shown_path(const std::string& path) {
  constexpr size_t kShownBytes = 60;
  return "'" + (path.size() > kShownBytes ? path.substr(0, kShownBytes) + "..." : path) + "'";
}

std::string image_name(const std::string& path) { return "image " + shown_path(path); }

Result<std::string> decode_inline_data(std::string_view uri) {
  const size_t comma = uri.find(',');
  if (!is_inline_data(uri) || comma == std::string_view::npos)
    return invalid_argument("is no data URI; " + std::string(kValid));
  if (!uri.substr(0, comma).ends_with(";base64"))
    return invalid_argument("is a data URI that is not in base64; " + std::string(kValid));
  std::string text(uri.substr(comma + 1));
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });  // lines, as MIME has them
  while (!text.empty() && text.back() == '=') text.pop_back();
  const size_t bytes = text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1);
  const bool whole = text.size() % 4 != 1 && text.find_first_of("= \t") == std::string::npos;
  text.append((4 - text.size() % 4) % 4, '=');
  if (!whole || text.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return invalid_argument("is a data URI whose base64 is damaged");
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return invalid_argument("is a data URI whose base64 is damaged");
  out.resize(bytes);  // OpenSSL counts the padding as zero bytes
  return out;
}

}  // namespace troupe
