#include <ATen/ops/equal.h>

#include "actors/data/dataset.h"
#include "tests/actors/data/video_data.h"

// Videos that are lists of frames, as a model sees them.

namespace troupe {
namespace {

using fixture::Frames;
using fixture::kThree;
using fixture::video_record;

std::unique_ptr<Dataset> opened(const Frames& data, const std::string& records) {
  const std::vector<DataSource> sources{
      {data.scratch.write("records.jsonl", records), data.scratch.path("pictures"), 1, -1}};
  auto index = build_sample_index(data.spec, sources, data.model, fixture::model_config());
  REQUIRE(index.ok());
  REQUIRE(index->bad.empty());
  auto dataset = open_dataset(data.spec, sources, data.model, fixture::model_config(), std::move(index).value());
  REQUIRE(dataset.ok());
  return std::move(dataset).value();
}

/// The frames of a video, slot `slot` of step `t` of its patches.
at::Tensor frame_of(const at::Tensor& patches, int64_t of_frame, int64_t t, int64_t slot) {
  return patches.reshape({-1, 3, 2, 14 * 14}).narrow(0, t * of_frame, of_frame).select(2, slot);
}

TEST_CASE("A video's patches are its frames two and two, the last one again where one lacks") {
  const Frames data;
  const auto dataset =
      opened(data, video_record("v", R"(["rgb.png", "grey.png", "palette.png"])") + fixture::record("a", "rgb.png") +
                       "\n" + fixture::record("b", "grey.png") + "\n" + fixture::record("c", "palette.png"));
  const auto video = dataset->patches(0, 0);
  REQUIRE(video.ok());
  const IndexedImage grid = dataset->index().samples[0].images[0];
  const int64_t of_frame = int64_t{grid.h} * grid.w;
  CHECK(video->size(0) == 2 * of_frame);
  const int pictures[] = {1, 2, 3, 3};
  for (int64_t f = 0; f < 4; ++f) {
    INFO(f);
    const auto picture = dataset->patches(pictures[f], 0);
    REQUIRE(picture.ok());
    CHECK(at::equal(frame_of(*video, of_frame, f / 2, f % 2), frame_of(*picture, of_frame, 0, 0)));
  }
  const auto tokens = dataset->tokens(0);
  REQUIRE(tokens.ok());
  CHECK(std::count(tokens->ids.begin(), tokens->ids.end(), fixture::model_config().video_token) == 2 * of_frame / 4);
}

TEST_CASE("A frame that is damaged behind its header, or changed its size, is the record's own error and named") {
  const Frames data;
  const auto dataset = opened(data, video_record("v", kThree));
  const std::string good = fixture::contents(fixture::path("pictures/rgb.png"));
  REQUIRE(dataset->patches(0, 0).ok());
  std::string damaged = good;
  for (size_t i = good.size() / 2; i < good.size() / 2 + 40; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
  data.scratch.write("pictures/f1.png", damaged);
  const auto broken = dataset->patches(0, 0);
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().code == ErrorCode::kDataLoss);
  CHECK(broken.error().message.find("sample v: the video of 3 frames from 'f0.png' on: image 'f1.png'") == 0);
  data.scratch.write("pictures/f1.png", fixture::contents(fixture::path("pictures/orientation6.jpg")));
  const auto turned = dataset->patches(0, 0);
  REQUIRE_FALSE(turned.ok());
  CHECK(turned.error().code == ErrorCode::kDataLoss);
  CHECK(turned.error().message.find("has another size") != std::string::npos);
}

}  // namespace
}  // namespace troupe
