#pragma once

#include <cstddef>
#include <string_view>

/// Well-formed UTF-8, by Unicode's table 3-7: no overlong forms, no surrogates, nothing beyond U+10FFFF. Pure
/// functions.
namespace troupe {

/// Bytes of the sequence that `s` begins with, 0 if it begins with none.
size_t utf8_length(std::string_view s);
/// Position of the first byte that is not part of a sequence, or npos.
size_t first_invalid_utf8(std::string_view text);

}  // namespace troupe
