#include "actors/data/byte_level_bpe.h"

#include <catch2/catch.hpp>
#include <random>

namespace troupe {
namespace {

TEST_CASE("Merges are applied by rank and from the left") {
  const auto bpe = ByteLevelBpe::create({{"a", 0}, {"b", 1}, {"aa", 2}, {"ab", 3}, {"aab", 4}},
                                        {{"a", "b"}, {"a", "ab"}, {"a", "a"}});
  REQUIRE(bpe.ok());
  std::vector<int64_t> ids;
  WordCache cache;
  REQUIRE((*bpe)->encode("aaab", cache, ids).ok());
  CHECK(ids == std::vector<int64_t>{0, 4});  // a a ab, then a aab: the first merge takes the last two letters
  ids.clear();
  REQUIRE((*bpe)->encode("aaa", cache, ids).ok());
  CHECK(ids == std::vector<int64_t>{2, 0});
}

TEST_CASE("A long run without a space takes time near its length and gives the same pieces as a short one") {
  const auto bpe = ByteLevelBpe::create({{"a", 0}, {"aa", 1}, {"aaaa", 2}}, {{"a", "a"}, {"aa", "aa"}});
  REQUIRE(bpe.ok());
  std::vector<int64_t> ids;
  WordCache cache;
  REQUIRE((*bpe)->encode(std::string(400000, 'a'), cache, ids).ok());
  CHECK(ids == std::vector<int64_t>(100000, 2));
}

TEST_CASE("Short, long, new and remembered words give the ids of the same rule") {
  // Over two letters: every pair of tokens up to eight letters merges, shorter results first.
  std::unordered_map<std::string, int64_t> vocabulary{{"a", 0}, {"b", 1}};
  std::vector<std::string> level{"a", "b"};
  std::vector<ByteLevelBpe::Merge> merges;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string> next;
    for (const auto& left : level)
      for (const auto& right : level) {
        if (!vocabulary.try_emplace(left + right, static_cast<int64_t>(vocabulary.size())).second) continue;
        merges.emplace_back(left, right);
        next.push_back(left + right);
      }
    level = next;
  }
  const auto bpe = ByteLevelBpe::create(vocabulary, merges);
  REQUIRE(bpe.ok());
  WordCache cache;
  std::mt19937 random(1);
  for (int n = 0; n < 200; ++n) {
    std::string word;
    for (size_t i = 1 + random() % 60; i > 0; --i) word += random() % 2 == 0 ? 'a' : 'b';
    std::vector<int64_t> first, again, expected;
    REQUIRE((*bpe)->encode(word, cache, first).ok());
    REQUIRE((*bpe)->encode(word, cache, again).ok());
    // The rule itself: the lowest rank first, from the left.
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    for (bool merged = true; merged;) {
      merged = false;
      for (size_t rank = 0; rank < merges.size() && !merged; ++rank)
        for (size_t i = 0; i + 1 < parts.size() && !merged; ++i)
          if (parts[i] == merges[rank].first && parts[i + 1] == merges[rank].second) {
            parts[i] += parts[i + 1];
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            merged = true;
          }
    }
    for (const auto& part : parts) expected.push_back(vocabulary.at(part));
    CHECK(first == expected);
    CHECK(again == expected);
  }
}

TEST_CASE("A byte without a token and a merge of unknown tokens are refused by name") {
  const auto bpe = ByteLevelBpe::create({{"a", 0}}, {});
  REQUIRE(bpe.ok());
  std::vector<int64_t> ids;
  WordCache cache;
  const auto status = (*bpe)->encode("b", cache, ids);
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
