#include "actors/data/text_normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include <algorithm>
#include <memory>

namespace troupe {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 29;  // composing may lengthen a text threefold, and ICU counts in 32 bits

/// Form C of Unicode 9, which is what the tokenizers' normaliser knows: a character of a later version composes with
/// nothing and is not put into order. Built once; immutable.
const icu::Normalizer2& composition() {
  static const auto known = [] {
    UErrorCode code = U_ZERO_ERROR;
    auto set = std::make_unique<icu::UnicodeSet>();
    set->applyPropertyAlias("age", "9.0", code).freeze();
    return set;
  }();
  static const icu::FilteredNormalizer2 nfc = [] {
    UErrorCode code = U_ZERO_ERROR;
    return icu::FilteredNormalizer2(*icu::Normalizer2::getNFCInstance(code), *known);
  }();
  return nfc;
}

}  // namespace

bool is_nfc(std::string_view text) {
  // Below U+0300, that is without a byte from 0xCC, nothing composes.
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; })) return true;
  if (text.size() > kMaxBytes) return false;
  UErrorCode code = U_ZERO_ERROR;
  const bool normal = composition().isNormalizedUTF8({text.data(), static_cast<int32_t>(text.size())}, code);
  return normal && U_SUCCESS(code);
}

Result<std::string> normalize_nfc(std::string_view text) {
  if (text.size() > kMaxBytes)
    return invalid_argument("a text of " + std::to_string(text.size()) + " bytes is longer than 512 MiB");
  UErrorCode code = U_ZERO_ERROR;
  std::string out;
  out.reserve(text.size());
  icu::StringByteSink<std::string> sink(&out);
  composition().normalizeUTF8(0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr, code);
  if (U_FAILURE(code)) return internal_error(std::string("Unicode normalisation failed: ") + u_errorName(code));
  return out;
}

}  // namespace troupe
