#include "base/data/index_block.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/data/index_progress.h"

namespace troupe {
namespace {

const BlockKey kKey{1, 2};

std::vector<BlockEntry> entries() {
  BlockEntry sample;
  sample.kind = BlockEntry::Kind::kSample;
  sample.tokens = 12;
  sample.supervised = 3;
  sample.images = {{1, 4, 6, 2}};
  sample.id = "a";
  sample.seen = {{"a.png", 77}};
  BlockEntry bad;
  bad.kind = BlockEntry::Kind::kBad;
  bad.id = "b";
  bad.reason = "why";
  bad.seen = {{"gone.png", 0}};
  return {sample, bad, BlockEntry{}};
}

TEST_CASE("A block comes back as it was written") {
  const std::string bytes = encode_block(kKey, entries());
  const auto back = decode_block(bytes, kKey, 3);
  REQUIRE(back.ok());
  REQUIRE(back->size() == 3);
  CHECK((*back)[0].tokens == 12);
  CHECK((*back)[0].images[0].w == 6);
  CHECK((*back)[0].seen[0].stamp == 77);
  CHECK((*back)[1].reason == "why");
  CHECK((*back)[1].seen[0].path == "gone.png");
  CHECK((*back)[2].kind == BlockEntry::Kind::kNotTaken);
  CHECK(encode_block(kKey, *back) == bytes);
}

TEST_CASE(
    "A block is refused under another key, for another number of records, cut anywhere and with any byte changed") {
  const std::string bytes = encode_block(kKey, entries());
  CHECK(decode_block(bytes, {1, 3}, 3).error().message == "is another block");
  CHECK(decode_block(bytes, kKey, 4).error().message == "has another number of records");
  for (size_t i = 0; i < bytes.size(); ++i) {
    INFO(i);
    CHECK_FALSE(decode_block(bytes.substr(0, i), kKey, 3).ok());
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(decode_block(changed, kKey, 3).ok());
  }
}

TEST_CASE("Values that no record has are refused, whatever the checksum says") {
  const auto refused = [](auto change) {
    auto list = entries();
    change(list[0]);
    const auto back = decode_block(encode_block(kKey, list), kKey, 3);
    return !back.ok() && back.error().message == "does not parse";
  };
  CHECK(refused([](BlockEntry& e) { e.tokens = -1; }));
  CHECK(refused([](BlockEntry& e) { e.supervised = 13; }));
  CHECK(refused([](BlockEntry& e) { e.images[0].h = 0; }));
  CHECK(refused([](BlockEntry& e) { e.images.clear(); }));
  CHECK(refused([](BlockEntry& e) { e.images[0].t = 2; }));
  CHECK(refused([](BlockEntry& e) { e.images[0].seconds = 1; }));
  CHECK(refused([](BlockEntry& e) { e.images[0].kind = static_cast<MediumKind>(2); }));
  for (const float seconds : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")})
    CHECK(refused([&](BlockEntry& e) { e.images[0] = {2, 4, 6, 2, MediumKind::kVideo, seconds}; }));
  CHECK_FALSE(refused([](BlockEntry& e) { e.images[0] = {2, 4, 6, 2, MediumKind::kVideo, 0.5F}; }));
  CHECK(refused([](BlockEntry& e) { e.kind = static_cast<BlockEntry::Kind>(3); }));
}

TEST_CASE("Progress is said to a person with the time that is left, and crosses processes as a line") {
  IndexProgress progress;
  progress.records = 450000;
  progress.done_bytes = 45;
  progress.total_bytes = 100;
  CHECK(progress_text(progress) == "45 % of the data, 450000 records");
  progress.seconds_left = 110.2;
  CHECK(progress_text(progress) == "45 % of the data, 450000 records, about 2 min left");
  const auto back = parse_progress_line(progress_line(progress));
  REQUIRE(back);
  CHECK(back->records == 450000);
  CHECK(back->done_bytes == 45);
  CHECK(back->seconds_left == 111);
  CHECK_FALSE(parse_progress_line("progress 1 2"));
  CHECK_FALSE(parse_progress_line("{\"samples\": 1}"));
  CHECK(seconds_left(0.5, 100, 100) < 0);
  CHECK(seconds_left(10, 0, 100) < 0);
  CHECK(seconds_left(10, 100, 300) == Approx(30));
}

}  // namespace
}  // namespace troupe
