#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "actors/data/index_builder.h"
#include "tests/actors/data/fixture.h"

namespace troupe::fixture {

/// A scratch folder with pictures, into which tests put records, and the index of these.
struct IndexData {
  Scratch scratch;
  DataSpec spec;
  IndexRun run;
  double take = 1;
  int64_t take_records = -1;
  std::string model = path("model");

  IndexData() { std::filesystem::copy(path("pictures"), scratch.path("pictures")); }
  std::string source(const std::string& text, const std::string& name = "records.jsonl") {
    return scratch.write(name, text);
  }
  /// Gives the data a model folder of its own, with that template.
  void write_template(const std::string& text) {
    std::filesystem::copy(model, scratch.path("model"));
    model = scratch.path("model");
    scratch.write("model/chat_template.jinja", text);
  }
  SampleIndex index(const std::vector<std::string>& paths) const {
    std::vector<DataSource> sources;
    for (const auto& file : paths) sources.push_back({file, scratch.path("pictures"), take, take_records});
    auto built = build_sample_index(spec, sources, model, model_config(), run);
    INFO((built.ok() ? "" : built.error().to_string()));
    REQUIRE(built.ok());
    return std::move(built).value();
  }
};

inline std::string record(const std::string& id, const std::string& image = "", const std::string& question = "What?") {
  const std::string picture = image.empty() ? "" : R"("image": ")" + image + R"(", )";
  return R"({"id": ")" + id + R"(", )" + picture + R"("conversations": [{"from": "human", "value": ")" +
         (image.empty() ? "" : "<image>\\n") + question + R"("}, {"from": "gpt", "value": "It is a cat."}]})";
}

/// Records FIRST, FIRST + 1, ..., a line each, every third with a picture.
inline std::string record_lines(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i)
    text += record("r" + std::to_string(i), i % 3 == 0 ? "rgb.png" : "") + "\n";
  return text;
}

}  // namespace troupe::fixture
