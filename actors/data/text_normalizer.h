#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Position of the first byte that is not part of well-formed UTF-8, or npos.
size_t first_invalid_utf8(std::string_view text);

/// Whether `text` (well-formed UTF-8) is in Unicode normalisation form C already, as nearly all text is. One scan.
/// The form is that of Unicode 9, the version of the tokenizers' normaliser: newer characters compose with nothing.
bool is_nfc(std::string_view text);
/// `text` (well-formed UTF-8) in that form. InvalidArgument beyond 512 MiB.
Result<std::string> normalize_nfc(std::string_view text);

}  // namespace troupe
