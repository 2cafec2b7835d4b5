#include "actors/data/character_class.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace troupe {
namespace {

struct Range {
  char32_t first, last;
};

// Letters and numbers that Unicode 15.0, 15.1 and 16.0 added to 14.0, in order.
constexpr std::array<Range, 35> kNewerLetters{{
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D4A, 0x10D65},
    {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x1123F, 0x11240}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3},
    {0x11BC0, 0x11BE0}, {0x11F02, 0x11F02}, {0x11F04, 0x11F10}, {0x11F12, 0x11F33}, {0x1342F, 0x1342F},
    {0x13441, 0x13446}, {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF},
    {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1DF25, 0x1DF2A}, {0x1E030, 0x1E06D}, {0x1E4D0, 0x1E4EB},
    {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0}, {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF},
}};
constexpr std::array<Range, 10> kNewerNumbers{{
    {0x10D40, 0x10D49},
    {0x116D0, 0x116E3},
    {0x11BF0, 0x11BF9},
    {0x11F50, 0x11F59},
    {0x16130, 0x16139},
    {0x16D70, 0x16D79},
    {0x1CCF0, 0x1CCF9},
    {0x1D2C0, 0x1D2D3},
    {0x1E4F0, 0x1E4F9},
    {0x1E5F1, 0x1E5FA},
}};

template <size_t N>
bool holds(const std::array<Range, N>& ranges, char32_t character) {
  const auto range =
      std::lower_bound(ranges.begin(), ranges.end(), character, [](const Range& r, char32_t c) { return r.last < c; });
  return range != ranges.end() && range->first <= character;
}

template <size_t N>
std::string written_out(const std::array<Range, N>& ranges) {
  std::string text;
  for (const auto& range : ranges) {
    std::array<char, 40> part{};
    std::snprintf(part.data(), part.size(), "\\x{%x}-\\x{%x}", static_cast<unsigned>(range.first),
                  static_cast<unsigned>(range.last));
    text += part.data();
  }
  return text;
}

}  // namespace

CharacterClass class_of(char32_t character) {
  const auto point = static_cast<UChar32>(character);
  const uint32_t category = U_GET_GC_MASK(point);
  if ((category & U_GC_L_MASK) != 0) return CharacterClass::kLetter;
  if ((category & U_GC_N_MASK) != 0) return CharacterClass::kNumber;
  if ((category & U_GC_CN_MASK) != 0) {
    if (holds(kNewerLetters, character)) return CharacterClass::kLetter;
    return holds(kNewerNumbers, character) ? CharacterClass::kNumber : CharacterClass::kOther;
  }
  return u_isUWhiteSpace(point) != 0 ? CharacterClass::kSpace : CharacterClass::kOther;
}

std::string newer_letters() { return written_out(kNewerLetters); }
std::string newer_numbers() { return written_out(kNewerNumbers); }

}  // namespace troupe
