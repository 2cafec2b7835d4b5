#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Whether `text` (well-formed UTF-8) is in Unicode normalisation form C already, as nearly all text is. One scan.
/// The form is that of Unicode 9, the version of the tokenizers' normaliser: newer characters compose with nothing.
bool is_nfc(std::string_view text);
/// `text` (well-formed UTF-8) in that form. InvalidArgument beyond 512 MiB.
Result<std::string> normalize_nfc(std::string_view text);

}  // namespace troupe
