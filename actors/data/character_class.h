#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// What the tokenizers' regex engine (Oniguruma) takes a character for: \p{L}, \p{N}, \s, or none of them. It knows
/// Unicode 16, which the system's ICU and PCRE2 may not, so the letters and numbers since 14.0 stand in a table.
enum class CharacterClass : unsigned char { kOther, kLetter, kNumber, kSpace };
CharacterClass class_of(char32_t character);

/// The same table as ranges inside of a PCRE2 class: what \p{L} (or \p{N}) has to be joined with.
std::string newer_letters();
std::string newer_numbers();

}  // namespace troupe
