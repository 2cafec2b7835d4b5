#include "actors/data/byte_level_bpe.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("Merges are applied by rank and from the left") {
  const auto bpe = ByteLevelBpe::create({{"a", 0}, {"b", 1}, {"aa", 2}, {"ab", 3}, {"aab", 4}},
                                        {{"a", "b"}, {"a", "ab"}, {"a", "a"}});
  REQUIRE(bpe.ok());
  std::vector<int64_t> ids;
  REQUIRE((*bpe)->encode("aaab", ids).ok());
  CHECK(ids == std::vector<int64_t>{0, 4});  // a a ab, then a aab: the first merge takes the last two letters
  ids.clear();
  REQUIRE((*bpe)->encode("aaa", ids).ok());
  CHECK(ids == std::vector<int64_t>{2, 0});
}

TEST_CASE("A long run without a space takes time near its length and gives the same pieces as a short one") {
  const auto bpe = ByteLevelBpe::create({{"a", 0}, {"aa", 1}, {"aaaa", 2}}, {{"a", "a"}, {"aa", "aa"}});
  REQUIRE(bpe.ok());
  std::vector<int64_t> ids;
  REQUIRE((*bpe)->encode(std::string(400000, 'a'), ids).ok());
  CHECK(ids == std::vector<int64_t>(100000, 2));
}

TEST_CASE("A byte without a token and a merge of unknown tokens are refused by name") {
  const auto bpe = ByteLevelBpe::create({{"a", 0}}, {});
  REQUIRE(bpe.ok());
  std::vector<int64_t> ids;
  const auto status = (*bpe)->encode("b", ids);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("byte 98") != std::string::npos);
  CHECK_FALSE(ByteLevelBpe::create({{"a", 0}}, {{"a", "a"}}).ok());
}

TEST_CASE("Tokens stand for raw bytes") {
  const auto bpe = ByteLevelBpe::create({{"\u0120", 0}, {"\u00C3", 1}}, {});  // the letters of space and of byte 0xC3
  REQUIRE(bpe.ok());
  CHECK(*(*bpe)->bytes(0) == " ");
  CHECK(*(*bpe)->bytes(1) == "\xC3");
  CHECK((*bpe)->bytes(7) == nullptr);
}

}  // namespace
}  // namespace troupe
