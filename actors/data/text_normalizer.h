#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Position of the first byte that is not part of well-formed UTF-8, or npos.
size_t first_invalid_utf8(std::string_view text);

/// `text` (well-formed UTF-8) in Unicode normalisation form C. ASCII text comes back at the price of one scan.
Result<std::string> normalize_nfc(std::string_view text);

}  // namespace troupe
