#include "actors/data/text_normalizer.h"

#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <vector>

namespace troupe {
namespace {

/// Length of the well-formed sequence at the start of `s`, 0 if there is none.
size_t sequence_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return follows(1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF) {
    if ((b == 0xE0 && byte(1) < 0xA0) || (b == 0xED && byte(1) > 0x9F)) return 0;  // overlong forms and surrogates
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (b >= 0xF0 && b <= 0xF4) {
    if ((b == 0xF0 && byte(1) < 0x90) || (b == 0xF4 && byte(1) > 0x8F)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t n = sequence_length(text.substr(at));
    if (n == 0) return at;
    at += n;
  }
  return std::string_view::npos;
}

Result<std::string> normalize_nfc(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  if (text.size() > size_t{1} << 30)
    return invalid_argument("a text of " + std::to_string(text.size()) + " bytes is longer than 1 GiB");
  UErrorCode code = U_ZERO_ERROR;
  const UNormalizer2* nfc = unorm2_getNFCInstance(&code);
  std::vector<UChar> wide(text.size()),
      composed(text.size() * 3 + 1);  // composition never lengthens UTF-16 more than threefold
  int32_t wide_size = 0;
  u_strFromUTF8(wide.data(), static_cast<int32_t>(wide.size()), &wide_size, text.data(),
                static_cast<int32_t>(text.size()), &code);
  const int32_t composed_size =
      unorm2_normalize(nfc, wide.data(), wide_size, composed.data(), static_cast<int32_t>(composed.size()), &code);
  std::string out(static_cast<size_t>(std::max(composed_size, 0)) * 3 + 1, '\0');
  int32_t size = 0;
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &size, composed.data(), composed_size, &code);
  if (U_FAILURE(code)) return internal_error(std::string("Unicode normalisation failed: ") + u_errorName(code));
  out.resize(static_cast<size_t>(size));
  return out;
}

}  // namespace troupe
