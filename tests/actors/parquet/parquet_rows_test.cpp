#include "actors/parquet/parquet_rows.h"

#include <sys/resource.h>
#include <xxhash.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
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

TEST_CASE("Rows of a damaged page cannot be read, those before it can, in whatever order and from wherever") {
  const auto file = rows_of("damaged.parquet");
  const std::string reason = [&] {
    const auto broken = file->cursor(0)->read(200);
    REQUIRE_FALSE(broken.ok());
    CHECK(broken.error().code == ErrorCode::kDataLoss);
    CHECK(has(broken.error().message, "cannot be read: "));
    return broken.error().message;
  }();
  for (const int64_t row : {100, 179, 0, 1}) {  // the damaged page has rows 180 to 239
    INFO(row);
    CHECK(file->cursor(0)->read(row).ok());
  }
  RowPool pool({file});
  for (const int64_t row : {0, 200, 1, 180, 399, 179, 210, 100, 201, 240}) {
    INFO(row);
    for (const auto& read : {pool.row(0, row), file->cursor(0)->read(row)}) {
      REQUIRE(read.ok() == (row < 180));
      if (!read.ok()) CHECK(read.error().message == reason);
    }
  }
}

TEST_CASE("With a page index the rows behind a damaged page are read, also by a cursor that walks up to it") {
  const auto file = rows_of("indexed_damaged.parquet");
  const auto is_read = [](Result<std::shared_ptr<const Row>> read) { return read.ok(); };
  std::vector<int64_t> lost;
  for (int64_t row = 0; row < 400; ++row)
    if (!is_read(file->cursor(0)->read(row))) lost.push_back(row);
  REQUIRE_FALSE(lost.empty());
  CHECK(lost.front() == 180);
  CHECK(lost.size() == 60);  // of one page
  for (const int64_t row : lost) {
    const auto cursor = file->cursor(0);
    REQUIRE(cursor->read(lost.front() - 1).ok());
    CHECK_FALSE(is_read(cursor->read(row)));
  }
  const auto cursor = file->cursor(0);
  REQUIRE(cursor->read(lost.front() - 1).ok());
  CHECK(is_read(cursor->read(lost.back() + 1)));
}

TEST_CASE("The pass over a damaged group is made once, whatever the number of rows behind the damage") {
  const auto file = rows_of("chats_damaged.parquet");
  const auto seconds = [&](int64_t reads) {
    const auto now = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    const double began = now();
    for (int64_t i = 0; i < reads; ++i)
      if (file->cursor(0)->read(800 + i).ok()) return 1e9;
    return now() - began;
  };
  const double pass = seconds(1);
  CHECK(seconds(100) < 20 * pass);
}

TEST_CASE("A dictionary that the footer does not name is found for a jump by the page index") {
  const auto file = rows_of("dictionary.parquet");
  for (const int64_t row : {390, 0, 200, 50}) {
    const auto read = file->cursor(0)->read(row);
    INFO(row << (read.ok() ? "" : ": " + read.error().message));
    REQUIRE(read.ok());
    CHECK((*read)->object == Json{{"id", "id " + std::to_string(row % 40)}});
  }
}

TEST_CASE("A page index that is broken counts as none") {
  const fixture::Scratch scratch;
  std::string bytes = fixture::contents(fixture::parquet("indexed.parquet"));
  uint32_t footer_bytes = 0;
  std::memcpy(&footer_bytes, bytes.data() + bytes.size() - 8, sizeof(footer_bytes));
  bytes.replace(bytes.size() - 8 - footer_bytes - 40, 40, 40, '\xFF');  // the offset index stands before the footer
  const auto opened = open(scratch.write("a.parquet", bytes));
  REQUIRE(opened.ok());
  for (const int64_t row : {390, 0, 200}) {
    const auto read = opened->file->cursor(0)->read(row);
    INFO(row << (read.ok() ? "" : ": " + read.error().message));
    REQUIRE(read.ok());
    CHECK((*read)->object == Json{{"id", "id " + std::to_string(row)}});
  }
}

TEST_CASE("A row counts with what its values take, not with its texts alone") {
  const auto read = rows_of("ids.parquet")->cursor(0)->read(0);
  REQUIRE(read.ok());
  CHECK((*read)->bytes == static_cast<int64_t>(4 + 2 * sizeof(Json)));  // "id 0", its value and its levels
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take address space of their own
TEST_CASE("Want of memory is not the row's fault, and passes") {
  const auto file = rows_of("large.parquet");
  {
    const fixture::LessMemory less(int64_t{64} << 20);
    const auto read = file->cursor(0)->read(0);
    REQUIRE_FALSE(read.ok());
    INFO(read.error().message);
    CHECK(read.error().code == ErrorCode::kResourceExhausted);
    CHECK(has(read.error().message, "cannot be read for want of memory: "));
  }
  CHECK(file->cursor(0)->read(0).ok());
}
#endif

TEST_CASE("The module is looked at once a process, and Arrow's version is a part of what is known of it") {
  const auto first = open(fixture::parquet("ids.parquet"));
  REQUIRE(first.ok());
  const auto module = MappedFile::open(TROUPE_PARQUET_MODULE);
  REQUIRE(module.ok());
  CHECK(first->reader != XXH3_64bits((*module)->bytes().data(), (*module)->bytes().size()));
  const std::string path = fixture::parquet("zstd.parquet");
  const auto file = MappedFile::open(path);
  REQUIRE(file.ok());
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  const rlimit none{0, files.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto second = open_parquet(*file, path, names());
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  INFO((second.ok() ? "" : second.error().message));
  REQUIRE(second.ok());
  CHECK(second->reader == first->reader);
}

}  // namespace troupe
