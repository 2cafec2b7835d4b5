#include "actors/data/split_pattern.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

std::vector<std::string> pieces_of(const std::string& pattern, const std::string& text) {
  const auto split = SplitPattern::compile(pattern);
  REQUIRE(split.ok());
  std::vector<std::string_view> pieces;
  REQUIRE(split->split(text, pieces).ok());
  return {pieces.begin(), pieces.end()};
}

TEST_CASE("Matches and what lies between them become pieces and lose no byte") {
  CHECK(pieces_of("\\d+", "ab12cd3") == std::vector<std::string>{"ab", "12", "cd", "3"});
  CHECK(pieces_of("x", "abc") == std::vector<std::string>{"abc"});
  CHECK(pieces_of("x", "").empty());
}

TEST_CASE("A pattern that matches nothing at a place steps over whole characters") {
  CHECK(pieces_of("x*", "ééx") == std::vector<std::string>{"éé", "x"});
}

TEST_CASE("White space is Unicode's: no-break space and next line, but not the Mongolian vowel separator") {
  CHECK(pieces_of("\\s+", "a\u00A0\u0085b") == std::vector<std::string>{"a", "\u00A0\u0085", "b"});
  CHECK(pieces_of("[^\\s]+", "a\u00A0b") == std::vector<std::string>{"a", "\u00A0", "b"});
  CHECK(pieces_of("\\s", "a\u180Eb") == std::vector<std::string>{"a\u180Eb"});
}

TEST_CASE("Letters and numbers are those of Unicode 16, in a class and outside of one") {
  for (const char* letter : {"\uA7CB", "\U000105C0", "\U0001E030", "\U000323AF"}) {
    CHECK(pieces_of("\\p{L}", std::string("1") + letter + "2") == std::vector<std::string>{"1", letter, "2"});
    CHECK(pieces_of("[^\\p{L}]+", std::string("1") + letter) == std::vector<std::string>{"1", letter});
  }
  CHECK(pieces_of("\\p{N}+", "a\U00011F50\U00010D49b") == std::vector<std::string>{"a", "\U00011F50\U00010D49", "b"});
  CHECK(pieces_of("\\p{L}", "1\u0378\U000323B02") == std::vector<std::string>{"1\u0378\U000323B02"});
}

TEST_CASE("A pattern that does not compile is refused with the place of the fault") {
  const auto split = SplitPattern::compile("a(b");
  REQUIRE_FALSE(split.ok());
  CHECK(split.error().message.find("a(b") != std::string::npos);
}

}  // namespace
}  // namespace troupe
