#include "actors/video/frame_sampling.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// What the published sampler takes: how many frames and a running hash of their numbers.
struct Case {
  int64_t frames;
  double native, fps;
  int64_t min, max;
  size_t count;
  int64_t hash;
};

int64_t hash_of(const std::vector<int64_t>& numbers) {
  int64_t hash = 0;
  for (const int64_t number : numbers) hash = (hash * 31 + number) % 1000003;
  return hash;
}

TEST_CASE("Frames are those of the published sampler") {
  // By Qwen2VLVideoProcessor.sample_frames of transformers 5.24.0.
  for (const Case& c :
       {Case{300, 30, 2, 4, 768, 20, 972834}, Case{100, 25, 2, 4, 768, 8, 460565}, Case{5, 30, 2, 4, 768, 4, 1026},
        Case{2, 30, 2, 4, 768, 2, 1}, Case{3, 10, 2, 4, 768, 2, 1}, Case{4000, 24, 2, 4, 64, 64, 322442},
        Case{17, 10, 14, 4, 768, 16, 123031}, Case{333, 29.97, 2, 4, 768, 22, 422435},
        Case{1501, 23.976, 2, 4, 768, 124, 929617}, Case{90000, 59.94, 2, 4, 768, 768, 173153},
        Case{48, 12, 3, 4, 768, 12, 365721}, Case{61, 7.5, 1.3, 6, 20, 10, 187354}}) {
    INFO(c.frames << " frames at " << c.native);
    const auto sampled = sample_frames(c.frames, c.native, {c.fps, c.min, c.max}, 2);
    REQUIRE(sampled.ok());
    CHECK(sampled->numbers.size() == c.count);
    CHECK(hash_of(sampled->numbers) == c.hash);
    CHECK(sampled->fps == static_cast<double>(c.count) / static_cast<double>(c.frames) * c.native);
  }
}

TEST_CASE("A frame behind the last one, which the published sampler may name, is left out") {
  for (const auto& [frames, native, fps] :
       {std::tuple(899, 60.0, 1.0), std::tuple(1414, 29.97, 0.5), std::tuple(237, 30.0, 2.0)}) {
    const auto sampled = sample_frames(frames, native, {fps, 4, 768}, 2);
    REQUIRE(sampled.ok());
    CHECK(sampled->numbers.size() % 2 == 0);
    CHECK(sampled->numbers.back() < frames);
  }
}

TEST_CASE("The limits hold, and too short a file is refused with what would do") {
  CHECK(sample_frames(1000, 10, {2, 4, 11}, 2)->numbers.size() == 10);
  CHECK(sample_frames(1000, 1000, {2, 4, 768}, 2)->numbers.size() == 4);
  CHECK(sample_frames(3, 1000, {2, 4, 768}, 2)->numbers.size() == 2);
  const auto one = sample_frames(1, 25, {}, 2);
  REQUIRE_FALSE(one.ok());
  CHECK(one.error().message == "has 1 frame, of which 0 would be taken; valid: at least 2");
  CHECK_FALSE(sample_frames(1000, 25, {2, 1, 1}, 2).ok());
}

}  // namespace
}  // namespace troupe
