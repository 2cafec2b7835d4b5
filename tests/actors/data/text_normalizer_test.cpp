#include "actors/data/text_normalizer.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("Letters and their combining marks are composed, Hangul included") {
  CHECK(*normalize_nfc("plain") == "plain");
  CHECK(*normalize_nfc("e\u0301") == "\u00E9");
  CHECK(*normalize_nfc("a\u0323\u0302") == "\u1EAD");
  CHECK(*normalize_nfc("\u1112\u1161\u11AB") == "\uD55C");
  CHECK(*normalize_nfc("\u212B") == "\u00C5");
}

TEST_CASE("Characters that are newer than the normaliser of the tokenizers stay as and where they are") {
  // U+1DFA is a mark below (14.0): by today's tables it would move before U+0301.
  CHECK(*normalize_nfc("x\u0301\u1DFA") == "x\u0301\u1DFA");
  CHECK(is_nfc("x\u0301\u1DFA"));
  CHECK(*normalize_nfc("x\u0301\u0323") == "x\u0323\u0301");
  CHECK_FALSE(is_nfc("x\u0301\u0323"));
  CHECK(*normalize_nfc("\U00011935\U00011930") == "\U00011935\U00011930");  // composes since 13.0
  CHECK(*normalize_nfc("\u1B05\u1B35") == "\u1B06");
}

}  // namespace
}  // namespace troupe
