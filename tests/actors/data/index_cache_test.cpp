#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <set>

#include "actors/data/block_cache.h"
#include "actors/data/record_blocks.h"
#include "tests/actors/data/index_data.h"

// Building an index with what earlier runs left in a cache: what is read again, and that it changes nothing.

namespace troupe {
namespace {

namespace fs = std::filesystem;
using fixture::record;
using fixture::record_lines;

constexpr int kBlock = static_cast<int>(RecordBlocks::kMostRecords);
constexpr int64_t kNoLimit = int64_t{1} << 40;

/// Records, a cache, and how many blocks the last index took from it.
struct Cached : fixture::IndexData {
  std::unique_ptr<BlockCache> cache = std::move(BlockCache::open(scratch.path("cache"), kNoLimit)).value();
  IndexProgress last;
  std::vector<std::string> warnings;
  Cached() {
    run.cache = cache.get();
    run.progress = [this](const IndexProgress& progress) { last = progress; };
    run.warn = [this](const std::string& text) { warnings.push_back(text); };
    spec.workers = 2;
  }
  SampleIndex fresh(const std::string& file) {
    run.cache = nullptr;
    SampleIndex made = index({file});
    run.cache = cache.get();
    return made;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(scratch.path("cache")))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
};

void check_equal(const SampleIndex& a, const SampleIndex& b) {
  CHECK(a.digest == b.digest);
  CHECK(a.total_records == b.total_records);
  REQUIRE(a.samples.size() == b.samples.size());
  size_t different = 0;
  for (size_t i = 0; i < a.samples.size(); ++i) {
    const SampleView x = a.samples[i], y = b.samples[i];
    different += x.id != y.id || x.record != y.record || x.byte_offset != y.byte_offset ||
                 x.byte_length != y.byte_length || x.tokens != y.tokens || x.supervised != y.supervised ||
                 x.images.size() != y.images.size();
  }
  CHECK(different == 0);
  REQUIRE(a.bad.size() == b.bad.size());
  for (size_t i = 0; i < a.bad.size(); ++i) CHECK(a.bad[i].to_string() == b.bad[i].to_string());
}

TEST_CASE("A second index of the same data reads no record and is the same to the byte") {
  Cached data;
  const std::string file =
      data.source(record_lines(0, 3 * kBlock + 7) + "{\"id\": \"broken\n" + record("z", "gone.png"));
  const auto first = data.index({file});
  CHECK(data.last.blocks == 4);
  CHECK(data.last.cached_blocks == 0);
  const auto second = data.index({file});
  CHECK(data.last.blocks == 4);
  CHECK(data.last.cached_blocks == 4);
  check_equal(first, second);
  check_equal(first, data.fresh(file));
  CHECK(first.bad.size() == 2);
  for (const auto* index : {&first, &second})
    REQUIRE(index->write(data.scratch.path(index == &first ? "one" : "two")).ok());
  CHECK(fixture::contents(data.scratch.path("one")) == fixture::contents(data.scratch.path("two")));
}

TEST_CASE("Arrays and shards are kept in blocks too") {
  Cached data;
  std::string array;
  for (int i = 0; i < kBlock + 5; ++i) array += (i == 0 ? "[" : ",\n") + record("r" + std::to_string(i));
  const std::string file = data.source(array + "]", "records.json");
  const auto first = data.index({file});
  check_equal(first, data.index({file}));
  CHECK(data.last.blocks == 2);
  CHECK(data.last.cached_blocks == 2);
}

TEST_CASE(
    "A column that no record has is doubted by name, and so is one that the spec leaves out, also from the cache") {
  Cached data;
  const std::string text = R"({"system": "Be brief.", "instruction": "What?", "output": "It."})";
  DataSource source{data.source(text + "\n" + text + "\n"), data.scratch.path("pictures")};
  const auto doubts = [&](std::map<std::string, std::string> columns) {
    source.spelling.columns = std::move(columns);
    std::vector<std::string> said;
    data.run.warn = [&](const std::string& doubt) { said.push_back(doubt.substr(source.path.size())); };
    REQUIRE(build_sample_index(data.spec, {source}, data.model, fixture::model_config(), data.run).ok());
    return said;
  };
  const std::vector<std::string> misspelt{
      ": no record that is read has anything under 'sistem', which columns name for 'system'",
      ": records without 'sistem' have something under 'system', which is not read, as columns name 'sistem' for "
      "'system'; valid: columns that name the key, or name it under ignored"};
  CHECK(doubts({{"system", "sistem"}}) == misspelt);
  CHECK(data.last.cached_blocks == 0);
  CHECK(doubts({{"system", "sistem"}}) == misspelt);
  CHECK(data.last.cached_blocks == data.last.blocks);
  const std::vector<std::string> left{
      ": records have something under 'system', which the columns of the source leave out; valid: columns that name "
      "the key, or name it under ignored"};
  CHECK(doubts({{"system", ""}}) == left);
  CHECK(doubts({{"system", ""}, {"ignored", "system, other"}}).empty());
  CHECK(doubts({{"weight", "w"}, {"question", "instruction"}}).size() == 1);
  CHECK(doubts({{"answer", "output"}, {"question", "instruction"}, {"turns", ""}}).empty());
  CHECK(doubts({{"system", "system"}, {"history", "history"}, {"id", ""}}).empty());
}

TEST_CASE("A file that is a source twice is doubted, under another name too") {
  Cached data;
  const std::string file = data.source(record("a") + "\n"), other = data.source(record("b") + "\n", "other.jsonl");
  std::filesystem::create_symlink(file, data.scratch.path("link.jsonl"));
  data.index({file, other});
  CHECK(data.warnings.empty());
  data.index({file, other, data.scratch.path("link.jsonl")});
  REQUIRE(data.warnings.size() == 1);
  CHECK(data.warnings[0].find("link.jsonl is a source more than once") != std::string::npos);
}

TEST_CASE("Of a file that grew only what was added is read") {
  Cached data;
  const std::string old = record_lines(0, 3 * kBlock);
  data.index({data.source(old)});
  CHECK(data.last.blocks == 3);
  const std::string file = data.source(old + record_lines(3 * kBlock, 2 * kBlock + 1));
  const auto grown = data.index({file});
  CHECK(data.last.blocks == 6);
  CHECK(data.last.cached_blocks == 3);
  check_equal(grown, data.fresh(file));
  // A last block that was not full is the only old one that is read again.
  const std::string again = data.source(fixture::contents(file) + record_lines(9 * kBlock, 1));
  check_equal(data.index({again}), data.fresh(again));
  data.index({again});
  CHECK(data.last.cached_blocks == data.last.blocks);
}

TEST_CASE("A record that changed costs its own block, and what stands behind a longer line is still right") {
  Cached data;
  const std::string text = record_lines(0, 3 * kBlock);
  data.index({data.source(text)});
  std::string changed = text;
  changed.replace(changed.find("What?"), 5, "Who is it?");
  const std::string file = data.source(changed);
  const auto index = data.index({file});
  CHECK(data.last.cached_blocks == 2);
  check_equal(index, data.fresh(file));
}

TEST_CASE("What decides tokens or grids decides what is taken from the cache; limits on the length do not") {
  Cached data;
  const std::string file = data.source(record_lines(0, 10));
  const auto cached_after = [&] {
    check_equal(data.index({file}), data.fresh(file));
    data.index({file});
    return data.last.cached_blocks;
  };
  data.index({file});
  data.spec.max_sample_tokens = 30;
  data.spec.too_long = TooLong::kSkip;
  const auto shorter = data.index({file});
  CHECK(data.last.cached_blocks == 1);
  CHECK(shorter.samples.size() < 10);
  check_equal(shorter, data.fresh(file));
  data.spec.too_long = TooLong::kTruncateText;
  data.index({file});
  CHECK(data.last.cached_blocks == 0);
  CHECK(cached_after() == 1);
  data.spec.max_sample_tokens = 8192;
  for (int i = 0; i < 4; ++i) {
    if (i == 0) data.spec.min_pixels = 28 * 28 * 16;
    if (i == 1) data.spec.supervise = Supervise::kLast;
    if (i == 2) data.take = 0.5;
    if (i == 3) data.take_records = 4;
    data.index({file});
    INFO(i);
    CHECK(data.last.cached_blocks == 0);
    CHECK(cached_after() == 1);
  }
}

TEST_CASE(
    "A picture that changed is looked at again, one that only got another date costs its header, one that came back "
    "counts") {
  Cached data;
  const std::string file = data.source(record("a", "rgb.png") + "\n" + record("b", "late.png") + "\n" + record("c"));
  const auto before = data.index({file});
  REQUIRE(before.samples.size() == 2);
  REQUIRE(before.bad.size() == 1);
  const std::string picture = data.scratch.path("pictures/rgb.png");
  fs::last_write_time(picture, fs::last_write_time(picture) + std::chrono::hours(1));
  check_equal(before, data.index({file}));
  CHECK(data.last.cached_blocks == 1);
  data.scratch.write("pictures/late.png", fixture::contents(picture));
  data.scratch.write("pictures/rgb.png", fixture::contents(fixture::path("pictures/orientation6.jpg")));
  const auto after = data.index({file});
  CHECK(after.samples.size() == 3);
  CHECK(after.samples[0].images[0].h != before.samples[0].images[0].h);
  check_equal(after, data.fresh(file));
  fs::remove(picture);
  const auto without = data.index({file});
  REQUIRE(without.bad.size() == 1);
  CHECK(without.bad[0].id == "a");
}

/// Runs `work` in a child process and returns how it ended.
template <typename Work>
int status_of_child(const Work& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return status;
}

TEST_CASE("An index that was killed in the middle goes on where it was: only the missing blocks are read") {
  Cached data;
  const std::string file = data.source(record_lines(0, 20 * kBlock));
  data.run.progress_every = std::chrono::milliseconds(0);
  const int status = status_of_child([&] {
    data.run.progress = [](const IndexProgress& progress) {
      if (progress.blocks == 7) ::kill(::getpid(), SIGKILL);
    };
    data.index({file});
  });
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  int64_t kept = 0;
  for (const auto& path : data.files()) kept += path.extension() == ".block";
  CHECK(kept >= 7);
  CHECK(kept < 20);
  const auto index = data.index({file});
  CHECK(data.last.blocks == 20);
  CHECK(data.last.cached_blocks == kept);
  check_equal(index, data.fresh(file));
}

TEST_CASE("A damaged file of the cache is never believed, wherever the damage is, and is made anew") {
  Cached data;
  const std::string file = data.source(record_lines(0, kBlock));
  const auto whole = data.index({file});
  REQUIRE(data.files().size() == 1);
  const std::string path = data.files()[0].string(), good = fixture::contents(path);
  const auto damaged = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    check_equal(data.index({file}), whole);
    CHECK(data.last.cached_blocks == 0);
    CHECK(fixture::contents(path) == good);
  };
  damaged("");
  damaged(good.substr(0, 15));
  damaged(good.substr(0, good.size() / 2));
  damaged(good.substr(0, good.size() - 1));
  damaged(good + "x");
  // Magic, checksum, key, number of records, a kind, tokens, an id, and the end.
  for (const size_t at :
       {size_t{0}, size_t{9}, size_t{20}, size_t{33}, size_t{40}, size_t{42}, size_t{60}, good.size() - 1}) {
    INFO(at);
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    damaged(bytes);
  }
  data.index({file});
  CHECK(data.last.cached_blocks == 1);
  CHECK(data.warnings.empty());
}

TEST_CASE("A folder or a pipe in a block's place is no block and no crash") {
  Cached data;
  const std::string file = data.source(record_lines(0, 5));
  const auto whole = data.index({file});
  const fs::path path = data.files()[0];
  fs::remove(path);
  fs::create_directory(path);
  check_equal(data.index({file}), whole);
  CHECK(data.warnings.size() == 1);  // what was read could not be kept
  CHECK(data.warnings[0].find("is not kept for later runs: cannot rename ") != std::string::npos);
  for (const auto& entry : data.files()) CHECK(entry.string().find(".tmp") == std::string::npos);
}

TEST_CASE("Two processes that index the same data at once come to the same index and leave whole blocks") {
  Cached data;
  const std::string file = data.source(record_lines(0, 12 * kBlock));
  std::array<pid_t, 2> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    auto own = BlockCache::open(data.scratch.path("cache"), kNoLimit);
    data.run.cache = own->get();
    const auto index = data.index({file});
    const bool written = index.write(data.scratch.path("index-" + std::to_string(::getpid()))).ok();
    ::_exit(written ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  const auto one = fixture::contents(data.scratch.path("index-" + std::to_string(children[0])));
  CHECK(one == fixture::contents(data.scratch.path("index-" + std::to_string(children[1]))));
  CHECK(data.files().size() == 12);
  data.index({file});
  CHECK(data.last.cached_blocks == 12);
}

TEST_CASE(
    "Beyond the limit the blocks that were used longest ago go, and what a killed writer left goes after a while") {
  Cached data;
  const std::string one = data.source(record_lines(0, kBlock), "one.jsonl"),
                    two = data.source(record_lines(0, kBlock), "two.jsonl");
  data.index({one});
  const auto bytes = static_cast<int64_t>(fs::file_size(data.files()[0]));
  data.index({two});
  REQUIRE(data.files().size() == 2);
  for (const auto& path : data.files())
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(5));
  data.index({one});  // used just now
  const std::string left = data.scratch.write("cache/ab/x.block.tmp1-2-3", "half"),
                    young = data.scratch.write("cache/ab/y.block.tmp1-2-4", "half");
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  auto small = std::move(BlockCache::open(data.scratch.path("cache"), bytes * 3 / 2)).value();
  small->trim();
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(young));
  fs::remove(young);
  CHECK(data.files().size() == 1);
  data.index({one});
  CHECK(data.last.cached_blocks == 1);
  data.index({two});
  CHECK(data.last.cached_blocks == 0);
}

TEST_CASE("A cache that cannot be had is said once, and one that is off is not") {
  Cached data;
  const std::string file = data.scratch.write("file", "");
  std::vector<std::string> said;
  const auto warn = [&](const std::string& text) { said.push_back(text); };
  CHECK(BlockCache::open(CacheSettings{file + "/below/index", kNoLimit, ""}, warn) == nullptr);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("the index is built without what earlier runs know: cannot make the folder " + file) == 0);
  CHECK(BlockCache::open(CacheSettings{"", kNoLimit, ""}, warn) == nullptr);
  CHECK(said.size() == 1);
  const auto made = BlockCache::open(CacheSettings{data.scratch.path("new/index"), kNoLimit, "a word"}, warn);
  CHECK(made != nullptr);
  CHECK(said.back() == "a word");
}

}  // namespace
}  // namespace troupe
