#include "actors/data/dataset.h"

#include <ATen/ops/equal.h>

#include <catch2/catch.hpp>

#include "actors/data/index_builder.h"
#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

std::string record(const std::string& id, const std::string& images, const std::string& question) {
  return R"({"id": ")" + id + R"(", "images": [)" + images + R"(], "conversations": [{"from": "human", "value": ")" +
         question + R"("}, {"from": "gpt", "value": "Yes."}]})" + "\n";
}

struct Opened {
  fixture::Scratch scratch;
  DataSpec spec;
  std::vector<DataSource> sources;
  std::unique_ptr<Dataset> dataset;

  explicit Opened(const std::string& records) {
    sources = {{scratch.write("records.jsonl", records), fixture::path("pictures"), 1, -1}};
    auto index = build_sample_index(spec, sources, fixture::path("model"), fixture::model_config());
    REQUIRE(index.ok());
    REQUIRE(index->bad.empty());
    auto opened =
        open_dataset(spec, sources, fixture::path("model"), fixture::model_config(), std::move(index).value());
    REQUIRE(opened.ok());
    dataset = std::move(opened).value();
  }
};

TEST_CASE("Tokens, supervised counts, grids and patches of a sample are those that the index states") {
  const Opened opened(record("two", R"("rgb.png", "orientation6.jpg")", "<image> and <image>?") +
                      record("none", "", "Hello"));
  const auto& index = opened.dataset->index();
  REQUIRE(index.samples.size() == 2);
  for (size_t s = 0; s < 2; ++s) {
    const auto tokens = opened.dataset->tokens(static_cast<int64_t>(s));
    REQUIRE(tokens.ok());
    CHECK(static_cast<int64_t>(tokens->ids.size()) == index.samples[s].tokens);
    CHECK(tokens->positions.size() == tokens->ids.size());
    CHECK(std::count(tokens->supervised.begin(), tokens->supervised.end(), 1) == index.samples[s].supervised);
    REQUIRE(tokens->images.size() == index.samples[s].images.size());
    for (size_t i = 0; i < tokens->images.size(); ++i) {
      CHECK(tokens->images[i].token_offset == index.samples[s].images[i].token_offset);
      const auto patches = opened.dataset->patches(static_cast<int64_t>(s), static_cast<int>(i));
      REQUIRE(patches.ok());
      CHECK(patches->size(0) == index.samples[s].images[i].patches());
      CHECK(patches->size(1) == 3 * 2 * 14 * 14);
    }
  }
  CHECK(index.samples[0].images[0].h < index.samples[0].images[0].w);
  CHECK(index.samples[0].images[1].h > index.samples[0].images[1].w);
}

TEST_CASE("D07: a picture's patches are its own and do not depend on the sample's place") {
  const Opened one(record("a", R"("rgb.png")", "<image>") + record("b", R"("grey.png")", "<image>"));
  const Opened other(record("b", R"("grey.png")", "<image>") + record("a", R"("rgb.png")", "<image>"));
  CHECK(at::equal(*one.dataset->patches(0, 0), *other.dataset->patches(1, 0)));
  CHECK(at::equal(*one.dataset->patches(1, 0), *other.dataset->patches(0, 0)));
  CHECK_FALSE(at::equal(*one.dataset->patches(0, 0), *one.dataset->patches(1, 0)));
}

TEST_CASE("A file that changed since it was indexed is an error that names the sample") {
  const Opened opened(record("a", "", "Hello") + record("b", "", "Hello"));
  auto index = opened.dataset->index();
  opened.scratch.write("records.jsonl", record("a", "", "Other words than those") + record("b", "", "Hello"));
  const auto again =
      open_dataset(opened.spec, opened.sources, fixture::path("model"), fixture::model_config(), std::move(index));
  REQUIRE(again.ok());
  const auto tokens = (*again)->tokens(0);
  REQUIRE_FALSE(tokens.ok());
  CHECK(tokens.error().code == ErrorCode::kDataLoss);
  CHECK(tokens.error().message.find("sample a") != std::string::npos);
}

TEST_CASE("Samples and images that do not exist are refused with their number") {
  const Opened opened(record("a", "", "Hello"));
  CHECK_FALSE(opened.dataset->tokens(1).ok());
  CHECK_FALSE(opened.dataset->tokens(-1).ok());
  CHECK_FALSE(opened.dataset->patches(0, 0).ok());
}

TEST_CASE("The text of a sample is its question and its last answer") {
  const Opened opened(
      record("a", "", "Hello?") +
      R"({"messages": [{"role": "user", "content": "q1"}, {"role": "assistant", "content": "a1"}, {"role": "user", "content": "q2"},)"
      R"( {"role": "assistant", "content": "a2"}]})"
      "\n");
  CHECK(opened.dataset->text(0)->question == "Hello?");
  CHECK(opened.dataset->text(0)->answer == "Yes.");
  CHECK(opened.dataset->text(1)->question == "user: q1\nassistant: a1\nuser: q2");
  CHECK(opened.dataset->text(1)->answer == "a2");
  CHECK(*opened.dataset->decode({opened.dataset->end_of_turn()}) == "<|im_end|>");
}

TEST_CASE("Pixel limits come from the spec, else from the folder, else from the published processor") {
  DataSpec spec;
  CHECK(pixel_limits(spec, fixture::path("model"))->max_pixels == 200704);
  CHECK(pixel_limits(spec, fixture::path("pictures"))->max_pixels == 28 * 28 * 1280);
  spec.max_pixels = 99999;
  CHECK(pixel_limits(spec, fixture::path("model"))->max_pixels == 99999);
  CHECK(pixel_limits(spec, fixture::path("model"))->min_pixels == 3136);
}

TEST_CASE("A synthetic dataset gives what its index states, the same each time") {
  const auto dataset = open_synthetic_dataset({1, 56, 84, 20, 5}, fixture::model_config(), 9);
  REQUIRE(dataset->index().samples.size() == 5);
  CHECK(static_cast<int64_t>(dataset->tokens(3)->ids.size()) == dataset->index().samples[3].tokens);
  const auto patches = dataset->patches(3, 0);
  REQUIRE(patches.ok());
  CHECK(patches->size(0) == 24);
  CHECK(at::equal(*patches, *dataset->patches(3, 0)));
  CHECK_FALSE(dataset->tokens(5).ok());
}

}  // namespace
}  // namespace troupe
