#include "base/data/sample_index.h"

#include <unistd.h>
#include <xxhash.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe {
namespace {

struct Scratch {
  std::filesystem::path folder;
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-index-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(folder); }
  std::string file() const { return (folder / "index").string(); }
};

SampleIndex example() {
  SampleIndex index;
  index.digest = "abc";
  index.total_records = 4;
  index.samples.push_back(IndexedSample{1, 2, 30, 40, 50, 6, {{1, 4, 6, 10}, {1, 2, 2, 20}}, "first"});
  index.samples.push_back(IndexedSample{0, 3, int64_t{1} << 40, 1, 2, 0, {}, ""});
  index.bad.push_back({"file", 7, 8, "id", "why"});
  return index;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("An index that is written is read back as it was, and no temporary file is left") {
  const Scratch scratch;
  REQUIRE(example().write(scratch.file()).ok());
  const auto back = SampleIndex::read(scratch.file());
  REQUIRE(back.ok());
  CHECK(back->digest == "abc");
  CHECK(back->total_records == 4);
  REQUIRE(back->samples.size() == 2);
  const auto first = back->samples[0];
  CHECK(first.source == 1);
  CHECK(first.record == 2);
  CHECK(first.byte_offset == 30);
  CHECK(first.byte_length == 40);
  CHECK(first.tokens == 50);
  CHECK(first.supervised == 6);
  REQUIRE(first.images.size() == 2);
  CHECK(first.images[0].w == 6);
  CHECK(first.images[1].token_offset == 20);
  CHECK(first.id == "first");
  CHECK(back->samples[1].byte_offset == int64_t{1} << 40);
  REQUIRE(back->bad.size() == 1);
  CHECK(back->bad[0].line == 7);
  CHECK(back->bad[0].reason == "why");
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.folder), {}) == 1);
}

TEST_CASE("Every damaged byte and every cut of the file is noticed") {
  const Scratch scratch;
  REQUIRE(example().write(scratch.file()).ok());
  const std::string good = contents(scratch.file());
  const auto code_of = [&](const std::string& bytes) {
    std::ofstream(scratch.file(), std::ios::binary | std::ios::trunc) << bytes;
    const auto read = SampleIndex::read(scratch.file());
    return read.ok() ? std::string("ok") : std::string(error_code_name(read.error().code));
  };
  CHECK(code_of(good) == "ok");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    CHECK(code_of(damaged) == "data_loss");
    CHECK(code_of(good.substr(0, i)) == "data_loss");
  }
  CHECK(code_of(good + "x") == "data_loss");
}

TEST_CASE("Rows that point outside of the file are refused although the checksum is right") {
  const Scratch scratch;
  SampleIndex index = example();
  REQUIRE(index.write(scratch.file()).ok());
  const std::string good = contents(scratch.file());
  constexpr size_t kHeader = 48, kFirstImage = 24, kFirstIdByte = 32, kImages = 52, kIdBytes = 56;
  for (const size_t field : {kFirstImage, kFirstIdByte, kImages, kIdBytes}) {
    std::string bytes = good;
    bytes[kHeader + field + 3] = '\x7f';
    const uint64_t checksum = XXH3_64bits(bytes.data() + 16, bytes.size() - 16);
    std::memcpy(bytes.data() + 8, &checksum, sizeof(checksum));
    std::ofstream(scratch.file(), std::ios::binary | std::ios::trunc) << bytes;
    const auto read = SampleIndex::read(scratch.file());
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().message.find("does not parse") != std::string::npos);
  }
}

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_CASE("Opening a large index takes none of its size in memory, and looking at one sample little") {
  const Scratch scratch;
  constexpr int kSamples = 300'000;
  {
    SampleIndex index;
    for (int i = 0; i < kSamples; ++i)
      index.samples.push_back(IndexedSample{0, i, i * 100, 100, 50, 6, {{1, 4, 6, 10}}, "sample " + std::to_string(i)});
    REQUIRE(index.write(scratch.file()).ok());
  }
  const auto size = static_cast<int64_t>(std::filesystem::file_size(scratch.file()));
  REQUIRE(size > 25'000'000);
  const int64_t before = resident_bytes();
  const auto index = SampleIndex::read(scratch.file());
  REQUIRE(index.ok());
  CHECK(resident_bytes() - before < size / 4);
  CHECK(index->samples[kSamples / 2].id == "sample 150000");
  CHECK(resident_bytes() - before < size / 4);
}

TEST_CASE("A missing index and a folder that cannot be written are named") {
  const auto missing = SampleIndex::read("/nowhere/index");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  const auto written = example().write("/nowhere/index");
  REQUIRE_FALSE(written.ok());
  CHECK(written.error().message.find("/nowhere/index") != std::string::npos);
}

TEST_CASE("The held-out split takes its fraction, grows with it and depends on source and record only") {
  int64_t held_out = 0, more = 0;
  for (int64_t r = 0; r < 20000; ++r) {
    IndexedSample sample;
    sample.source = static_cast<int32_t>(r % 2);
    sample.record = r;
    const bool here = in_eval_split(sample, 0.1);
    held_out += here;
    more += in_eval_split(sample, 0.3);
    if (here) CHECK(in_eval_split(sample, 0.3));
    CHECK_FALSE(in_eval_split(sample, 0));
    CHECK(in_eval_split(sample, 1));
    sample.id = "other";
    sample.tokens = 9;
    CHECK(in_eval_split(sample, 0.1) == here);
  }
  CHECK(held_out > 1800);
  CHECK(held_out < 2200);
  CHECK(more > 5600);
  CHECK(more < 6400);
}

}  // namespace
}  // namespace troupe
