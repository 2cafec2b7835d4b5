#include <catch2/catch.hpp>

#include "actors/data/block_cache.h"
#include "actors/data/sample_reader.h"
#include "tests/actors/data/index_data.h"
#include "tests/actors/parquet/parquet_fixture.h"

// Rows of Parquet files as records, from file to index.

namespace troupe {
namespace {

using fixture::IndexData;
using fixture::parquet;

bool has(const std::string& text, const std::string& words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

/// The records of pictures.parquet as lines that name the pictures' files.
std::string lines_of_pictures() {
  const std::vector<std::string> names{"rgb.png", "grey.png", "palette.png", "alpha.png"};
  std::string text;
  for (size_t i = 0; i < 20; ++i) {
    const std::string image = i % 3 == 0 ? "" : R"("image": ")" + names[i % 4] + R"(", )";
    text += "{" + image + R"("conversations": [{"from": "human", "value": ")" + (i % 3 == 0 ? "Who?" : "<image>What?") +
            R"("}, {"from": "gpt", "value": "Number )" + std::to_string(i) + R"(."}]})" + "\n";
  }
  return text;
}

void check_same(const SampleIndex& a, const SampleIndex& b) {
  REQUIRE(a.samples.size() == b.samples.size());
  for (size_t i = 0; i < a.samples.size(); ++i) {
    const SampleView x = a.samples[i], y = b.samples[i];
    INFO(x.id);
    CHECK(x.record == y.record);
    CHECK(x.tokens == y.tokens);
    CHECK(x.supervised == y.supervised);
    REQUIRE(x.images.size() == y.images.size());
    for (size_t k = 0; k < x.images.size(); ++k) {
      CHECK(x.images[k].h == y.images[k].h);
      CHECK(x.images[k].w == y.images[k].w);
      CHECK(x.images[k].token_offset == y.images[k].token_offset);
    }
  }
}

SampleIndex index_of(const std::string& name) {
  const IndexData data;
  return data.index({parquet(name)});
}

}  // namespace

TEST_CASE("Pictures as bytes in a struct, as bytes and as paths give the index that files give") {
  const IndexData data;
  const auto lines = data.index({data.scratch.write("records.jsonl", lines_of_pictures())});
  REQUIRE(lines.bad.empty());
  const auto rows = data.index({parquet("pictures.parquet")});
  check_same(rows, lines);
  CHECK(rows.samples[0].id == "pictures.parquet:1");
  CHECK(rows.samples[19].id == "pictures.parquet:20");
  CHECK(rows.total_records == 20);
  const auto paths = data.index({parquet("paths.parquet")});
  REQUIRE(paths.bad.empty());
  check_same(data.index({parquet("bytes.parquet")}), paths);
  const auto parts = data.index({parquet("parts.parquet")});
  REQUIRE(parts.samples.size() == 1);
  CHECK(parts.samples[0].images.size() == 1);
}

TEST_CASE("take counts rows, and rows of groups follow each other") {
  IndexData data;
  data.take_records = 11;
  CHECK(data.index({parquet("pictures.parquet")}).samples.size() == 11);
  data.take_records = -1;
  data.take = 0.25;
  const auto index = data.index({parquet("pictures.parquet")});
  REQUIRE(index.samples.size() == 5);
  CHECK(index.samples[4].record == 17);
}

TEST_CASE("Blocks of a Parquet file are known to the next run, and not when a byte changed") {
  IndexData data;
  const auto cache = BlockCache::open(data.scratch.path("cache"), int64_t{1} << 30);
  REQUIRE(cache.ok());
  IndexProgress last;
  data.run.cache = cache->get();
  data.run.progress = [&](const IndexProgress& progress) { last = progress; };
  const std::string copy = data.scratch.path("copy.parquet");
  std::filesystem::copy(parquet("pictures.parquet"), copy);
  const auto first = data.index({copy});
  CHECK(last.blocks == 3);  // groups of 8, 8 and 4 rows
  CHECK(last.cached_blocks == 0);
  CHECK(data.index({copy}).digest == first.digest);
  CHECK(last.cached_blocks == 3);
  std::string bytes = fixture::contents(copy);
  bytes.replace(bytes.find("Number 19."), 10, "Number 91.");
  data.scratch.write("copy.parquet", bytes);
  CHECK(data.index({copy}).digest != first.digest);
  CHECK(last.cached_blocks == 0);
}

TEST_CASE("Rows that cannot be used are reported by file, row and reason") {
  const auto latin = index_of("latin.parquet");
  REQUIRE(latin.bad.size() == 1);
  CHECK(latin.bad[0].line == 1);
  CHECK(has(latin.bad[0].reason, "key 'instruction' holds text that is not UTF-8"));
  const auto photo = index_of("photo.parquet");
  REQUIRE(photo.bad.size() == 4);
  CHECK(photo.bad[3].line == 4);
  CHECK(has(photo.bad[3].reason, "key 'photo' names pictures but is not read"));
  const auto empty = index_of("empty.parquet");
  REQUIRE(empty.bad.size() == 1);
  CHECK(has(empty.bad[0].reason, "the file holds no record"));
}

TEST_CASE("Which rows of a damaged file are bad, and why, does not depend on the number of threads") {
  IndexData data;
  const auto index = [&](int workers) {
    data.spec.workers = workers;
    return data.index({parquet("chats_damaged.parquet")});
  };
  const auto one = index(1);
  REQUIRE(one.samples.size() > 600);
  REQUIRE(one.samples.size() <= 700);
  for (int i = 0; i < 3; ++i) {
    const auto four = index(4);
    CHECK(four.digest == one.digest);
    CHECK(four.samples.size() == one.samples.size());
    REQUIRE(four.bad.size() == one.bad.size());
    for (size_t k = 0; k < one.bad.size(); ++k) {
      CHECK(four.bad[k].line == one.bad[k].line);
      CHECK(four.bad[k].reason == one.bad[k].reason);
      CHECK(one.bad[k].reason == one.bad[0].reason);
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take address space of their own
TEST_CASE("Want of memory ends the indexing instead of making a record a bad one") {
  IndexData data;
  data.spec.workers = 1;
  const fixture::LessMemory less(int64_t{180} << 20);
  const auto built =
      build_sample_index(data.spec, {{parquet("large.parquet"), "", 1, -1}}, data.model, fixture::model_config());
  REQUIRE_FALSE(built.ok());
  INFO(built.error().to_string());
  CHECK(built.error().code == ErrorCode::kResourceExhausted);
  CHECK(has(built.error().message, "record large.parquet:1 of "));
}
#endif

TEST_CASE("A column of another name is read when the spec names it") {
  const IndexData data;
  DataSource source{parquet("photo.parquet"), data.scratch.path("pictures"), 1, -1};
  source.spelling.columns["images"] = "photo";
  const auto built = build_sample_index(data.spec, {source}, data.model, fixture::model_config());
  REQUIRE(built.ok());
  REQUIRE(built->bad.size() == 4);  // its questions have no place for a picture
  CHECK(has(built->bad[0].reason, "0 <image> placeholders in the user turns, but 1 image"));
}

TEST_CASE("A record is read again by its row, and one that is not there is named") {
  const IndexData data;
  const std::string path = parquet("pictures.parquet");
  const auto index = data.index({path});
  const auto reader = SampleReader::create(data.spec, {{path, "", 1, -1}}, data.model, fixture::model_config());
  REQUIRE(reader.ok());
  const auto record = (*reader)->indexed_record(index.samples[10]);
  REQUIRE(record.ok());
  CHECK(record->turns.back().text == "Number 10.");
  REQUIRE(record->images.size() == 1);
  CHECK(record->images[0].path == "palette.png");
  CHECK(record->images[0].in_record());
  const auto picture = (*reader)->open_image(0, record->images[0]);
  REQUIRE(picture.ok());
  CHECK(picture->bytes() == fixture::contents(fixture::path("pictures/palette.png")));
  IndexedSample gone;
  gone.byte_offset = 20;
  gone.byte_length = 1;
  CHECK_FALSE((*reader)->indexed_record(gone).ok());
}

TEST_CASE("A Parquet file that cannot be opened is refused with the spec's key") {
  const IndexData data;
  DataSource source{data.scratch.write("a.parquet", "PAR1...."), "", 1, -1};
  source.key = "data.sources[1]";
  const auto built = build_sample_index(data.spec, {source}, data.model, fixture::model_config());
  REQUIRE_FALSE(built.ok());
  CHECK(built.error().message ==
        "key 'data.sources[1].path': " + source.path + " is a Parquet file that is cut off: its footer is missing");
}

}  // namespace troupe
