#include "base/config/data_sources.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/config/job_spec_parser.h"

namespace troupe {
namespace {

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-sources-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
  Result<JobSpec> parse(const std::string& data) const {
    return parse_job_spec("name: j\nmodel: {path: /m}\ntraining: {steps: 1}\ndata:\n" + data,
                          (path / "j.yaml").string());
  }
};

constexpr const char* kInfo = R"({
  "chat": {"file_name": "chat.json", "formatting": "sharegpt", "num_samples": 7,
           "columns": {"messages": "dialog", "images": "pics"}, "tags": {"role_tag": "who", "user_tag": "Q", "assistant_tag": "A"}},
  "plain": {"file_name": "sub/plain.json", "columns": {"prompt": "p", "response": "r"}},
  "hub": {"hf_hub_url": "a/b"},
  "page": {"file_name": "x.json", "homepage_url": "http://x", "hf_hub_url": "", "columns": {"prompt": "p", "response": "r"}},
  "both": {"hf_hub_url": "a/b", "file_name": "x.json"},
  "pairs": {"file_name": "x.json", "ranking": true},
  "clips": {"file_name": "x.json", "columns": {"videos": "clips"}},
  "talk": {"file_name": "x.json", "formatting": "sharegpt", "columns": {"images": "images"}},
  "none": {"file_name": "x.json", "num_samples": 0},
  "less": {"file_name": "x.json", "num_samples": -3},
  "half": {"file_name": "x.json", "num_samples": 0.5},
  "word": {"file_name": "x.json", "num_samples": "7"},
  "mute": {"file_name": "x.json", "formatting": "sharegpt", "tags": {"role_tag": ""}},
  "void": {"file_name": "x.json", "formatting": "sharegpt", "columns": {"messages": ""}},
  "sounds": {"file_name": "x.json", "columns": {"audios": "sounds"}}
})";

TEST_CASE("Columns and roles of data are shared, and a source's own go before them") {
  const Folder folder;
  const auto spec = folder.parse(
      "  columns: {turns: dialog}\n  roles: {Q: user}\n  sources:\n    - {path: a.json}\n"
      "    - {path: b.json, columns: {turns: talk, images: pics}, roles: {A: assistant}}\n");
  REQUIRE(spec.ok());
  CHECK(spec->data.sources[0].spelling.columns.at("turns") == "dialog");
  CHECK(spec->data.sources[1].spelling.columns.at("turns") == "talk");
  CHECK(spec->data.sources[1].spelling.roles.size() == 2);
  const auto again = parse_job_spec(job_spec_to_yaml(*spec), "/again.yaml");
  REQUIRE(again.ok());
  for (size_t i = 0; i < 2; ++i) {
    CHECK(again->data.sources[i].spelling.columns == spec->data.sources[i].spelling.columns);
    CHECK(again->data.sources[i].spelling.roles == spec->data.sources[i].spelling.roles);
  }
}

TEST_CASE("A source's weight is a number above 0, is kept in the resolved job, and is for training only") {
  const Folder folder;
  const auto spec = folder.parse("  sources: [{path: a.json}, {path: b.json, weight: 2.5}]\n");
  REQUIRE(spec.ok());
  CHECK(spec->data.sources[0].weight == 1);
  CHECK(spec->data.sources[1].weight == 2.5);
  const auto again = parse_job_spec(job_spec_to_yaml(*spec), "/again.yaml");
  REQUIRE(again.ok());
  CHECK(again->data.sources[1].weight == 2.5);
  for (const char* bad : {"0", "-1", "1001", "x", "'2'", "[1]"}) {
    const auto refused = folder.parse(std::string("  sources: [{path: a.json, weight: ") + bad + "}]\n");
    INFO(bad);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().to_string().find("a number above 0 up to 1000") != std::string::npos);
  }
  const auto held = folder.parse("  sources: [{path: a.json}]\neval: {sources: [{path: b.json, weight: 2}]}\n");
  REQUIRE_FALSE(held.ok());
  CHECK(held.error().to_string().find("weight") != std::string::npos);
}

TEST_CASE("Unknown columns and speakers are refused with what is valid") {
  const Folder folder;
  const auto column = folder.parse("  sources: [{path: a.json, columns: {turn: x}}]\n");
  REQUIRE_FALSE(column.ok());
  CHECK(column.error().to_string().find("unknown column") != std::string::npos);
  const auto role = folder.parse("  sources: [{path: a.json, roles: {Q: human}}]\n");
  REQUIRE_FALSE(role.ok());
  CHECK(role.error().to_string().find("valid: user, assistant") != std::string::npos);
}

TEST_CASE("A dataset_info.json is a list of sources") {
  const Folder folder;
  folder.write("dataset_info.json", kInfo);
  const auto spec = folder.parse("  sources: [{path: dataset_info.json, datasets: [chat, plain]}]\n");
  INFO((spec.ok() ? "" : spec.error().to_string()));
  REQUIRE(spec.ok());
  REQUIRE(spec->data.sources.size() == 2);
  const auto &chat = spec->data.sources[0], &plain = spec->data.sources[1];
  CHECK(chat.path == (folder.path / "chat.json").string());
  CHECK(chat.image_root == folder.path.string());
  CHECK(chat.take_records == 7);
  CHECK(chat.spelling.columns == std::map<std::string, std::string>{{"turns", "dialog"},
                                                                    {"images", "pics"},
                                                                    {"role", "who"},
                                                                    {"question", ""},
                                                                    {"input", ""},
                                                                    {"answer", ""},
                                                                    {"history", ""},
                                                                    {"system", ""},
                                                                    {"videos", ""}});
  CHECK(chat.spelling.roles == std::map<std::string, std::string>{{"Q", "user"}, {"A", "assistant"}});
  CHECK(plain.path == (folder.path / "sub/plain.json").string());
  CHECK(plain.spelling.columns.at("question") == "p");
  CHECK(plain.spelling.columns.at("input").empty());  // not named
  const auto again = parse_job_spec(job_spec_to_yaml(*spec), "/again.yaml");
  INFO((again.ok() ? "" : again.error().to_string()));
  REQUIRE(again.ok());
  for (size_t i = 0; i < 2; ++i)
    CHECK(again->data.sources[i].spelling.columns == spec->data.sources[i].spelling.columns);
}

TEST_CASE("An entry of a dataset_info.json without columns has those of its formatting, and the spec goes before it") {
  const Folder folder;
  folder.write("dataset_info.json",
               R"({"a": {"file_name": "a.json"}, "s": {"file_name": "s.json", "formatting": "sharegpt"}})");
  const auto spec =
      folder.parse("  sources: [{path: dataset_info.json, datasets: [a, s], columns: {system: system}}]\n");
  REQUIRE(spec.ok());
  const auto &alpaca = spec->data.sources[0].spelling.columns, &sharegpt = spec->data.sources[1].spelling.columns;
  CHECK(alpaca.at("question") == "instruction");
  CHECK(alpaca.at("input") == "input");
  CHECK(alpaca.at("answer") == "output");
  CHECK(sharegpt.at("turns") == "conversations");
  for (const auto* columns : {&alpaca, &sharegpt}) {
    CHECK(columns->at("system") == "system");
    for (const char* none : {"history", "images", "videos"}) CHECK(columns->at(none).empty());
  }
}

TEST_CASE("A column that is not read is written as an empty key, which neither role nor content may have") {
  const Folder folder;
  const auto spec = folder.parse("  sources: [{path: a.json, columns: {system: \"\"}}]\n");
  REQUIRE(spec.ok());
  CHECK(spec->data.sources[0].spelling.columns.at("system").empty());
  for (const char* bad : {"{role: \"\"}", "{content: \"\"}", "{system: }"}) {
    INFO(bad);
    CHECK_FALSE(folder.parse(std::string("  sources: [{path: a.json, columns: ") + bad + "}]\n").ok());
  }
}

TEST_CASE("Data sets that cannot be used are refused by name and reason") {
  const Folder folder;
  folder.write("dataset_info.json", kInfo);
  const auto reason = [&](const std::string& name) {
    const auto spec = folder.parse("  sources: [{path: dataset_info.json, datasets: " + name + "}]\n");
    REQUIRE_FALSE(spec.ok());
    return spec.error().to_string();
  };
  CHECK(reason("hub").find("hf_hub_url") != std::string::npos);
  CHECK(reason("both").find("(key 'hf_hub_url', which LLaMA-Factory takes before file_name)") != std::string::npos);
  CHECK(reason("pairs").find("preference") != std::string::npos);
  CHECK(reason("sounds").find("'audios'") != std::string::npos);
  CHECK(reason("clips").find("'clips' of " + (folder.path / "dataset_info.json").string() +
                             " has columns without 'prompt' and 'response'") != std::string::npos);
  CHECK(reason("talk").find("has columns without 'messages'") != std::string::npos);
  for (const char* number : {"none", "less", "half", "word"}) {
    INFO(reason(number));
    CHECK(reason(number).find("data set '" + std::string(number) + "' of " +
                              (folder.path / "dataset_info.json").string() + " has num_samples ") != std::string::npos);
  }
  CHECK(reason("mute").find("tag 'role_tag' is \"\", not a word") != std::string::npos);
  CHECK(reason("void").find("has columns without 'messages'") != std::string::npos);
  CHECK(reason("nothing").find("valid: chat, plain") != std::string::npos);
  CHECK(reason("[]").find("datasets") != std::string::npos);
}

TEST_CASE("Paths that are no one file of records, and ignored keys in a list, are refused with what would be valid") {
  const Folder folder;
  const auto says = [&](const std::string& source, const std::string& words) {
    const auto spec = folder.parse("  sources: [{" + source + "}]\n");
    REQUIRE_FALSE(spec.ok());
    INFO(spec.error().to_string());
    CHECK(spec.error().to_string().find(words) != std::string::npos);
  };
  says("path: dataset_info.json", "datasets: [NAMES] beside it");
  says("path: \"shards/*.tar\"", "one file; several are sources of their own");
  says("path: \"shards/{000..009}.tar\"", "one file; several are sources of their own");
  says("path: a.json, columns: {ignored: [a, b]}", "keys in one text, with commas between");
  says("path: a.json, columns: {ignored: pic, images: pic}", "keys that no column names; images names it");
  says("path: \"" + std::string(300, '*') + ".json\"", "one file; several are sources of their own");
  CHECK(folder.parse("  sources: [{path: a.json, columns: {ignored: \"label, image\"}}]\n").ok());
  folder.write("dataset_info.json", kInfo);
  CHECK(folder.parse("  sources: [{path: dataset_info.json, datasets: page}]\n").ok());
  const auto one = folder.parse(
      "  columns: {images: photo, id: key, ignored: \"logo, sound\"}\n"
      "  sources: [{path: a.json, columns: {ignored: photo}}, {path: b.json, columns: {videos: sound}}, {path: c.json, "
      "columns: {weight: loss, ignored: loss}}]\n");
  REQUIRE(one.ok());
  using Columns = std::map<std::string, std::string>;
  CHECK(one->data.sources[0].spelling.columns == Columns{{"images", ""}, {"id", "key"}, {"ignored", "photo"}});
  CHECK(one->data.sources[1].spelling.columns ==
        Columns{{"images", "photo"}, {"id", "key"}, {"ignored", "logo"}, {"videos", "sound"}});
  folder.write("odd{1}.json", "[]");
  CHECK(folder.parse("  sources: [{path: \"odd{1}.json\"}]\n").ok());
}

}  // namespace
}  // namespace troupe
