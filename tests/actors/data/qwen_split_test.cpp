#include "actors/data/qwen_split.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "actors/data/split_pattern.h"

namespace troupe {
namespace {

const std::string kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> pieces_of(const SplitPattern& pattern, const std::string& text) {
  std::vector<std::string_view> pieces;
  REQUIRE(pattern.split(text, pieces).ok());
  return {pieces.begin(), pieces.end()};
}

TEST_CASE("Text is cut as a regex engine cuts it, whatever stands beside what") {
  REQUIRE(is_qwen_pattern(kPattern));
  const std::string regex_only = "(?:" + kPattern + ")";  // means the same, but is not recognised
  REQUIRE_FALSE(is_qwen_pattern(regex_only));
  const std::vector<std::string> parts{"a",
                                       "Zz",
                                       "s",
                                       "T",
                                       "re",
                                       "ll",
                                       "'",
                                       "'S",
                                       "'ve",
                                       "1",
                                       "23",
                                       " ",
                                       "  ",
                                       "\t",
                                       "\n",
                                       "\r",
                                       "\v",
                                       "!",
                                       "-",
                                       "<|",
                                       "\x1f",
                                       "\x7f",
                                       std::string(1, '\0'),
                                       "\u00e9",
                                       "\u017f",
                                       "\u00a0",
                                       "\u0085",
                                       "\u732b",
                                       "\u0663",
                                       "\U0001F600",
                                       "\u0301",
                                       "\u3000",
                                       "\u2028",
                                       "\u200d",
                                       "\uA7CB",
                                       "\U00010D41",
                                       "\U00011F50"};
  const auto fast = SplitPattern::compile(kPattern), plain = SplitPattern::compile(regex_only);
  REQUIRE(fast.ok());
  REQUIRE(plain.ok());
  std::mt19937 random(7);
  for (int n = 0; n < 4000; ++n) {
    std::string text;
    for (size_t i = 1 + random() % 12; i > 0; --i) text += parts[random() % parts.size()];
    INFO(text);
    CHECK(pieces_of(*fast, text) == pieces_of(*plain, text));
  }
}

}  // namespace
}  // namespace troupe
