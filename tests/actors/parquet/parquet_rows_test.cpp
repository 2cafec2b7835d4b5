#include "actors/parquet/parquet_rows.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "actors/data/record_table.h"
#include "actors/parquet/row_pool.h"
#include "tests/actors/data/fixture.h"
#include "tests/actors/parquet/parquet_fixture.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

std::set<std::string> names() {
  auto keys = known_keys({});
  keys.insert({"score", "flag"});
  return keys;
}

Result<ParquetRows> open(const std::string& path) {
  const auto file = MappedFile::open(path);
  REQUIRE(file.ok());
  return open_parquet(*file, path, names());
}

std::shared_ptr<const RowFile> rows_of(const std::string& name) {
  const auto opened = open(fixture::parquet(name));
  INFO((opened.ok() ? "" : opened.error().message));
  REQUIRE(opened.ok());
  return opened->file;
}

/// As its library writes it, where bytes are lists of numbers.
Json written(const Row& row) { return Json::parse(row.object.dump()); }

std::string refusal(const std::string& path) {
  const auto opened = open(path);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message.starts_with(path + " "));
  CHECK(opened.error().code == ErrorCode::kInvalidArgument);
  return opened.error().message.substr(path.size() + 1);
}

bool has(const std::string& text, const std::string& words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("Rows are the same in every codec, encoding, string type, page version and size of groups") {
  const Json expected = Json::parse(fixture::contents(fixture::parquet("types.json")));
  for (const char* name : {"snappy", "zstd", "gzip", "plain", "brotli"}) {
    INFO(name);
    RowPool pool({rows_of(std::string(name) + ".parquet")});
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto row = pool.row(0, static_cast<int64_t>(i));
      INFO(i << (row.ok() ? "" : ": " + row.error().message));
      REQUIRE(row.ok());
      CHECK(written(**row) == expected[i]);
    }
    CHECK_FALSE(pool.row(0, static_cast<int64_t>(expected.size())).ok());
  }
}

TEST_CASE("Rows are the same in any order, with a page index and without, and for several threads") {
  const Json expected = Json::parse(fixture::contents(fixture::parquet("types.json")));
  std::atomic<int> wrong = 0;
  for (const char* name : {"snappy", "zstd", "gzip"}) {
    INFO(name);
    const auto file = rows_of(std::string(name) + ".parquet");
    RowPool pool({file});
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < expected.size(); ++i) {
          const size_t row = (i * 37 + t * 11) % expected.size();  // 37 and 60 have no common factor
          const auto cursor = file->cursor(0);                     // jumps from the group's begin
          const auto jumped = static_cast<int64_t>(row) < file->group_begins()[1]
                                  ? cursor->read(static_cast<int64_t>(row))
                                  : pool.row(0, static_cast<int64_t>(row));
          wrong += !jumped.ok() || written(**jumped) != expected[row];
        }
      });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("A cursor goes back and ahead over pages of its group") {
  const auto file = rows_of("ids.parquet");
  const auto cursor = file->cursor(0);
  for (const int64_t row : {399, 0, 120, 121, 5, 390, 250}) {
    const auto read = cursor->read(row);
    REQUIRE(read.ok());
    CHECK((*read)->object == Json{{"id", "id " + std::to_string(row)}});
  }
}

TEST_CASE("Types that are not read are left out unless a record needs them") {
  RowPool pool({rows_of("unused.parquet")});
  const auto row = pool.row(0, 0);
  REQUIRE(row.ok());
  CHECK((*row)->object ==
        Json::parse(
            R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "note": "n"})"));
  CHECK(has(refusal(fixture::parquet("timestamp.parquet")), "has column 'messages.content' of type Timestamp"));
  CHECK(has(refusal(fixture::parquet("map.parquet")), "has column 'images' of type Map, which is not read; valid: "));
  CHECK(refusal(fixture::parquet("lzo.parquet")) ==
        "has column 'id' compressed with lzo, which is not read; valid: snappy, zstd, gzip, brotli, lz4 or none");
}

TEST_CASE("A file that is cut off, damaged or encrypted is refused with its name") {
  const fixture::Scratch scratch;
  const std::string sound = fixture::contents(fixture::parquet("ids.parquet"));
  const auto refused = [&](std::string bytes) { return refusal(scratch.write("a.parquet", bytes)); };
  const std::string cut = "is a Parquet file that is cut off: its footer is missing";
  CHECK(refused("PAR1") == cut);
  CHECK(refused("PAR1PAR1") == cut);
  CHECK(refused(sound.substr(0, sound.size() - 1)) == cut);
  CHECK(refused(sound.substr(0, sound.size() / 2)) == cut);
  CHECK(refused(sound.substr(0, sound.size() - 1) + "E") == "is an encrypted Parquet file, which is not read");
  std::string footer = sound;
  uint32_t footer_bytes = 0;
  std::memcpy(&footer_bytes, sound.data() + sound.size() - 8, sizeof(footer_bytes));
  footer.replace(footer.size() - 8 - footer_bytes, 20, 20, '\xFF');
  CHECK(has(refused(footer), "is a Parquet file whose footer is damaged: "));
  std::string length = sound;
  length.replace(length.size() - 8, 4, 4, '\x7F');
  CHECK(has(refused(length), "is a Parquet file whose footer is damaged: "));
}

TEST_CASE("Rows of a damaged page cannot be read, those before it can") {
  const auto file = rows_of("damaged.parquet");
  RowPool pool({file});
  CHECK(pool.row(0, 0).ok());
  const auto broken = pool.row(0, 200);
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().code == ErrorCode::kDataLoss);
  CHECK(has(broken.error().message, "cannot be read: "));
  CHECK(pool.row(0, 1).ok());
}

}  // namespace troupe
