#include <catch2/catch.hpp>

#include "actors/data/index_builder.h"
#include "actors/data/record.h"
#include "tests/actors/data/fixture.h"
#include "tests/actors/data/parsed_record.h"

// Records in the spellings of other projects, and in those that a spec names.

namespace troupe {
namespace {

using namespace testing;

std::vector<std::string> paths_of(const Record& record) {
  std::vector<std::string> paths;
  for (const auto& image : record.images) paths.push_back(image.path);
  return paths;
}

bool has(const std::string& text, const std::string& words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

TEST_CASE("Question, input, answer and history in columns make turns") {
  const auto record = good(
      R"({"instruction": "Add.", "input": "1 and 2", "output": "3", "system": "s", "history": [["q", "a"]], "images": []})");
  REQUIRE(record.turns.size() == 5);
  CHECK(record.turns[0].text == "s");
  CHECK(record.turns[1].text == "q");
  CHECK(record.turns[2].text == "a");
  CHECK(record.turns[3].text == "Add.\n1 and 2");
  CHECK(record.turns[4].text == "3");
  const auto swift = good(R"({"query": "<image>What?", "response": "A cat.", "images": ["a.png"]})");
  REQUIRE(swift.turns.size() == 2);
  CHECK(paths_of(swift) == std::vector<std::string>{"a.png"});
  CHECK(has(reason(R"({"instruction": "Add."})"), "no answer"));
  CHECK(has(reason(R"({"instruction": "", "output": "3"})"), "no question"));
  CHECK(has(reason(R"({"query": "q", "response": "a", "history": [["q"]]})"), "pair"));
}

TEST_CASE("Words as a list of parts: text and images in their order") {
  const auto record = good(
      R"({"messages": [{"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "What?"}]},
          {"role": "assistant", "content": "A cat."}]})");
  CHECK(record.turns[0].text == "<image>What?");
  CHECK(paths_of(record) == std::vector<std::string>{"a.png"});
  const auto url = good(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
          {"role": "assistant", "content": "A cat."}]})");
  CHECK(paths_of(url) == std::vector<std::string>{"data:image/png;base64,AA=="});
  CHECK(has(
      reason(
          R"({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}, {"role": "assistant", "content": "a"}]})"),
      "'input_audio'"));
}

TEST_CASE("Images as objects with a path or with bytes") {
  const std::string turns =
      R"("messages": [{"role": "user", "content": "<image>"}, {"role": "assistant", "content": "a"}]})";
  CHECK(paths_of(good(R"({"images": [{"bytes": null, "path": "a.png"}], )" + turns)) ==
        std::vector<std::string>{"a.png"});
  CHECK(paths_of(good(R"({"images": [{"bytes": "AA=="}], )" + turns)) == std::vector<std::string>{"data:;base64,AA=="});
}

TEST_CASE("Columns and roles of the spec go before the table") {
  RecordSpelling spelling;
  spelling.columns = {{"turns", "dialog"}, {"role", "who"}, {"content", "says"}, {"images", "pictures"}};
  spelling.roles = {{"Mensch", "user"}, {"Maschine", "assistant"}};
  const auto record = good(
      R"({"pictures": "a.png", "dialog": [{"who": "Mensch", "says": "<image>?"}, {"who": "Maschine", "says": "!"}]})",
      spelling);
  CHECK(record.turns.size() == 2);
  CHECK(record.images.size() == 1);
  CHECK(has(reason(R"({"dialog": [{"who": "jemand", "says": "x"}]})", spelling), "Mensch"));
  CHECK(has(reason(R"({"conversations": []})", spelling), "'dialog'"));
}

TEST_CASE("Columns of the spec with an empty key are not read, but for images and videos, which are refused") {
  const RecordSpelling alpaca{{{"question", "p"},
                               {"answer", "r"},
                               {"input", ""},
                               {"system", ""},
                               {"history", ""},
                               {"images", ""},
                               {"videos", ""},
                               {"turns", ""}},
                              {}};
  const auto record = good(
      R"({"p": "Q", "r": "A", "input": "x", "system": "s", "history": [["q", "a"]], "images": [], "conversations": []})",
      alpaca);
  REQUIRE(record.turns.size() == 2);
  CHECK(record.turns[0].text == "Q");
  CHECK(has(reason(R"({"p": "Q", "r": "A", "images": ["a.png"]})", alpaca),
            "key 'images' holds something, but the columns"));
  CHECK(has(reason(R"({"p": "<image>", "r": "A", "image": "a.png"})", alpaca), "leave images out"));
  CHECK(has(reason(R"({"p": "Q", "r": "A", "video": "a.mp4"})", alpaca), "key 'video' holds something"));
  CHECK(has(reason(R"({"x": 1})", alpaca), "has no pair of a question ('p') with an answer ('r')"));
  CHECK(has(reason(R"({"r": "A"})", {{{"question", ""}, {"input", "i"}, {"answer", "r"}}, {}}), "has no question"));
  const RecordSpelling sharegpt{{{"turns", "t"}, {"question", ""}, {"input", ""}, {"answer", ""}}, {}};
  CHECK(has(reason(R"({"instruction": "Q", "output": "A"})", sharegpt), "has no 't'"));
  CHECK(has(reason(R"({"x": 1})", {{{"turns", ""}, {"question", ""}, {"input", ""}}, {}}), "has no column of turns"));
}

TEST_CASE("Keys that would change what is trained are refused when they hold something") {
  const std::string turns = R"("conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})";
  for (const char* key : {"tools", "objects", "rejected", "rejected_response", "audio", "audios"}) {
    CHECK(has(reason("{\"" + std::string(key) + "\": [\"x\"], " + turns), key));
    CHECK(good("{\"" + std::string(key) + "\": [], " + turns).turns.size() == 2);
  }
}

TEST_CASE("Broken JSON is named with its line and column in the file") {
  CHECK(has(reason("{\"id\": 1,\n \"x\" 2}", {}, {7, 3}), "line 8, column 6"));
  CHECK(has(reason("{\"id\": 1 2}", {}, {7, 3}), "line 7, column 12"));
  CHECK(has(reason("{\"a\": [1,], \"b\": 2}", {}, {1, 1}), "line 1, column 10"));
}

struct Data {
  fixture::Scratch scratch;
  DataSpec spec;
  SampleIndex index(const std::string& path, const std::string& root) {
    auto built = build_sample_index(spec, {{path, root, 1, -1}}, fixture::path("model"), fixture::model_config());
    INFO((built.ok() ? "" : built.error().to_string()));
    REQUIRE(built.ok());
    return std::move(built).value();
  }
};

TEST_CASE("A webdataset shard is a source: KEY.json with the turns, its pictures beside it") {
  Data data;
  const auto index = data.index(std::string(TROUPE_SHARDS) + "/shard.tar", "");
  REQUIRE(index.samples.size() == 3);
  CHECK(index.samples[0].id == "x/000");
  CHECK(index.samples[0].images.size() == 1);
  CHECK(index.samples[1].id == "named");
  CHECK(index.samples[1].images.size() == 1);
  CHECK(index.samples[2].images.empty());
  REQUIRE(index.bad.size() == 1);
  CHECK(has(index.bad[0].reason, "'x/003' has no member KEY.json"));
}

TEST_CASE("Of a shard with several faulty samples each is reported, and the good ones stay") {
  Data data;
  const auto index = data.index(std::string(TROUPE_SHARDS) + "/faulty.tar", "");
  std::vector<std::string> ids;
  for (const SampleView sample : index.samples) ids.emplace_back(sample.id);
  CHECK(ids == std::vector<std::string>{"x/000", "x/003", "x/005", "x/006"});
  REQUIRE(index.bad.size() == 3);
  CHECK(has(index.bad[0].to_string(), "record 'x/002': image 'x/002.png' is sparse, which is not read"));
  CHECK(has(index.bad[1].to_string(), "faulty.tar:2: record 'faulty.tar:2': sample 'x/001' has no member KEY.json"));
  CHECK(has(index.bad[2].to_string(), "sample 'x/004' has no member KEY.json"));
}

TEST_CASE("Samples of a shard that lie in pieces or have a member twice are refused by their key") {
  Data data;
  const std::string path = std::string(TROUPE_SHARDS) + "/pieces.tar";
  const auto index = data.index(path, "");
  std::vector<std::string> ids;
  for (const SampleView sample : index.samples) ids.emplace_back(sample.id);
  CHECK(ids == std::vector<std::string>{"x/002", "x/003", "x/006"});
  CHECK(index.samples[1].images.size() == 1);
  CHECK(index.total_records == 7);
  REQUIRE(index.bad.size() == 4);
  CHECK(has(index.bad[0].reason, "sample 'x/000' is in pieces: its members do not lie side by side"));
  CHECK(has(index.bad[1].reason, "sample 'x/001' is in pieces"));
  CHECK(has(index.bad[1].reason, "tar --sort=name"));
  CHECK(has(index.bad[2].reason, "sample 'x/004' has the member 'x/004.json' twice"));
  CHECK(has(index.bad[3].reason, "sample 'x/005' has several members KEY.json"));
  // Behind the cut a picture of any sample may lie.
  const std::string whole = fixture::contents(path);
  const auto cut = data.index(data.scratch.write("cut.tar", whole.substr(0, whole.rfind("x/005.JSON") + 100)), "");
  CHECK(cut.samples.empty());
  CHECK(has(cut.bad[2].reason, "sample 'x/002' may lack members"));
}

TEST_CASE("What macOS writes beside a shard's members splits no sample") {
  Data data;
  const auto index = data.index(std::string(TROUPE_SHARDS) + "/hidden.tar", "");
  CHECK(index.bad.empty());
  REQUIRE(index.samples.size() == 2);
  for (const SampleView sample : index.samples) CHECK(sample.images.size() == 1);
}

TEST_CASE("A shard's member that a record may be about and that is not read makes the sample bad") {
  Data data;
  const auto index = data.index(std::string(TROUPE_SHARDS) + "/unread.tar", "");
  std::vector<std::string> ids;
  for (const SampleView sample : index.samples) ids.emplace_back(sample.id);
  CHECK(ids == std::vector<std::string>{"007", "008", "009", "010", "011"});
  CHECK(index.samples[4].images.size() == 1);
  const std::vector<std::string> reasons{
      "member '000.img' is a picture by its content", "member '001.dat' is sound by its content",
      "member '002.bin' is a video by its content",   "member '003.photo' is an AVIF by its content",
      "member '004.heic' is a picture by its name",   "member '005.wav' is sound by its name",
      "member '006.depth.npy' is numbers by its name"};
  REQUIRE(index.bad.size() == reasons.size());
  for (size_t i = 0; i < reasons.size(); ++i) {
    INFO(index.bad[i].reason);
    CHECK(has(index.bad[i].reason, reasons[i] + ", which is not read"));
  }
}

TEST_CASE("A shard that is cut off keeps the samples before the cut, and not the one that may lack a picture") {
  Data data;
  const std::string whole = fixture::contents(std::string(TROUPE_SHARDS) + "/faulty.tar");
  const size_t last = whole.rfind("x/006.png");
  for (const size_t bytes : {last + 600, last + 100, last - 40}) {
    INFO(bytes);
    const auto index = data.index(data.scratch.write("cut.tar", whole.substr(0, bytes)), "");
    CHECK(index.samples.size() == 3);
    REQUIRE(index.bad.size() == 4);
    CHECK(has(index.bad[3].reason, "sample 'x/006' may lack members, as the archive cannot be read behind it: "));
  }
}

TEST_CASE("Files of records of other kinds are refused by the name of the kind and the key of the source") {
  Data data;
  const auto reason = [&](const std::string& bytes) {
    DataSource source{data.scratch.write("records", bytes), "", 1, -1};
    source.key = "data.sources[1]";
    const auto built = build_sample_index(data.spec, {source}, fixture::path("model"), fixture::model_config());
    REQUIRE_FALSE(built.ok());
    CHECK(has(built.error().message, "key 'data.sources[1].path': " + source.path + " is "));
    CHECK(has(built.error().message, "; valid: JSON or JSON lines in UTF-8, an uncompressed tar archive, or Parquet"));
    return built.error().message;
  };
  using namespace std::string_literals;
  CHECK(has(reason("\x1F\x8B\x08\0\0\0"s), "is gzip-compressed, which is not read"));
  CHECK(has(reason("\x28\xB5\x2F\xFD...."s), "zstd-compressed"));
  CHECK(has(reason("\xFF\xFE{\0\"\0"s), "UTF-16 text"));
  CHECK(has(reason("\xFE\xFF\0{\0\""s), "UTF-16 text"));
  CHECK(has(reason("{\0\"\0"s), "UTF-16 text"));
  CHECK(has(reason("\0[\0{"s), "UTF-16 text"));
  CHECK(has(reason("\xFF\xFE\0\0{\0\0\0"s), "UTF-32 text"));
  CHECK(has(reason("PARE...."), "an encrypted Parquet file"));
  CHECK(has(reason("ARROW1.."), "an Arrow file"));
  CHECK(has(reason("PK\x03\x04...."), "a zip archive"));
  CHECK(has(reason("\x58\0\0\0\0\0\0\0{}"s), "a file of bytes that are no text"));
}

TEST_CASE("A table with commas between is refused as one, and JSON under its name is read") {
  Data data;
  DataSource source{data.scratch.write("records.csv", "image,question\na.png,{what}\n"), "", 1, -1};
  const auto refused = build_sample_index(data.spec, {source}, fixture::path("model"), fixture::model_config());
  REQUIRE_FALSE(refused.ok());
  CHECK(has(refused.error().message, "a table of values with commas or tabs between"));
  data.scratch.write("records.csv", "\xEF\xBB\xBF" + std::string(R"( {"query": "q", "response": "a"})"));
  CHECK(build_sample_index(data.spec, {source}, fixture::path("model"), fixture::model_config()).ok());
}

TEST_CASE("Records whose image_root is an archive") {
  Data data;
  const std::string file = data.scratch.write(
      "records.json", R"([{"id": "a", "image": "a.png", "conversations": [{"from": "human", "value": "<image>"},
    {"from": "gpt", "value": "y"}]}, {"id": "b", "image": "b.png", "conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "y"}]}])");
  const auto index = data.index(file, std::string(TROUPE_SHARDS) + "/gnu.tar");
  CHECK(index.samples.size() == 1);
  REQUIRE(index.bad.size() == 1);
  CHECK(has(index.bad[0].reason, "'b.png' is not in the archive"));
}

TEST_CASE("Pictures of a shard that are links are trained, and broken links and linked records are refused by name") {
  Data data;
  const auto index = data.index(std::string(TROUPE_SHARDS) + "/links.tar", "");
  CHECK(index.samples.size() == 5);
  for (const auto& sample : index.samples) CHECK(SampleView(sample).images.size() == 1);
  REQUIRE(index.bad.size() == 3);
  CHECK(has(index.bad[0].reason, "'x/004.png' is a link to '../elsewhere.png', which is not in the archive"));
  CHECK(has(index.bad[1].reason, "'x/007.png' is a link to 'x/004.png', which cannot be had itself"));
  CHECK(has(index.bad[2].reason, "member 'x/005.json' is a link; valid: a file that holds the turns"));
}

TEST_CASE("Shards that are joined are one source, and a key that two of them have is said") {
  Data data;
  const std::string one = fixture::contents(std::string(TROUPE_SHARDS) + "/shard.tar"),
                    other = fixture::contents(std::string(TROUPE_SHARDS) + "/again.tar"),
                    hidden = fixture::contents(std::string(TROUPE_SHARDS) + "/links.tar");
  const auto twice = data.index(data.scratch.write("twice.tar", one + one), "");
  CHECK(twice.samples.size() == 0);
  REQUIRE_FALSE(twice.bad.empty());
  CHECK(has(twice.bad[0].reason, "or two of the archives that are joined here have its key"));
  const auto alone = data.index(std::string(TROUPE_SHARDS) + "/links.tar", "");
  const auto joined = data.index(data.scratch.write("joined.tar", other + hidden), "");
  REQUIRE(joined.samples.size() == alone.samples.size());
  for (size_t i = 0; i < alone.samples.size(); ++i) {
    const SampleView a = alone.samples[i], b = joined.samples[i];
    CHECK(a.id == b.id);
    CHECK(a.tokens == b.tokens);
    CHECK(b.byte_offset == a.byte_offset + static_cast<int64_t>(other.size()));
  }
}

TEST_CASE("Marks that leave answers out are seen in rows too") {
  for (const char* key : {"train", "label"}) {
    const std::set<std::string> keys = known_keys({});
    CHECK(keys.count(key) == 1);
  }
}

}  // namespace
}  // namespace troupe
