#include "actors/data/video_settings.h"

#include <catch2/catch.hpp>

#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

VideoProcessorConfig read(const std::vector<std::pair<std::string, std::string>>& files) {
  const fixture::Scratch scratch;
  for (const auto& [name, text] : files) scratch.write(name, text);
  const auto config = read_video_processor_config(scratch.path("."));
  INFO((config.ok() ? "" : config.error().message));
  REQUIRE(config.ok());
  return *config;
}

TEST_CASE("The video processor's file is looked for where the published one looks") {
  const std::string
      image = R"({"max_pixels": 1})",
      own = R"({"max_pixels": 2, "fps": 3, "min_frames": 2, "max_frames": 9})",
      nested =
          R"({"image_processor": {"max_pixels": 3}, "video_processor": {"size": {"shortest_edge": 1, "longest_edge": 4}}})";
  CHECK(read({{"preprocessor_config.json", image}}).max_pixels == 1);
  CHECK(read({{"preprocessor_config.json", image}, {"video_preprocessor_config.json", own}}).max_pixels == 2);
  CHECK(read({{"preprocessor_config.json", image}, {"processor_config.json", nested}}).max_pixels == 4);
  CHECK(read({{"preprocessor_config.json", image}, {"processor_config.json", "{}"}}).max_pixels == 1);
  CHECK_FALSE(read({}).max_pixels);
  const auto config = read({{"video_preprocessor_config.json", own}});
  CHECK(*config.fps == 3);
  CHECK(*config.min_frames == 2);
  CHECK(*config.max_frames == 9);
}

TEST_CASE("What is not built or no object is refused with file and key") {
  const auto complaint = [](const std::string& name, const std::string& text) {
    const fixture::Scratch scratch;
    scratch.write(name, text);
    const auto config = read_video_processor_config(scratch.path("."));
    return config.ok() ? "(accepted)" : config.error().message.substr(config.error().message.find(name));
  };
  CHECK(complaint("video_preprocessor_config.json", R"({"num_frames": 8})") ==
        "video_preprocessor_config.json: key 'num_frames': value 8 is not valid; valid: null: frames are taken by fps");
  CHECK(complaint("processor_config.json", R"({"video_processor": 3})") ==
        "processor_config.json: key 'video_processor' is not an object");
  CHECK(complaint("processor_config.json", R"({"video_processor": {"fps": 0}})") ==
        "processor_config.json: key 'video_processor.fps': value 0 is not valid; valid: a number above 0");
  CHECK(complaint("video_preprocessor_config.json", "[]") == "video_preprocessor_config.json: is not a JSON object");
}

TEST_CASE("The spec goes before the folder, the folder before the published defaults") {
  VideoSpec spec;
  VideoProcessorConfig folder;
  auto settings = video_settings(spec, folder, {});
  REQUIRE(settings.ok());
  CHECK(settings->sampling.fps == 2);
  CHECK(settings->frame_list_fps == 24);
  CHECK(settings->sampling.max_frames == 768);
  CHECK(settings->min_pixels == 128 * 28 * 28);
  CHECK(settings->max_pixels == 768 * 28 * 28);
  folder.fps = 3;
  folder.max_pixels = 200000;
  folder.min_frames = 8;
  spec.fps = 5;
  spec.max_frames = 16;
  settings = video_settings(spec, folder, {});
  REQUIRE(settings.ok());
  CHECK(settings->sampling.fps == 5);
  CHECK(settings->frame_list_fps == 5);
  CHECK(settings->sampling.min_frames == 8);
  CHECK(settings->sampling.max_frames == 16);
  CHECK(settings->max_pixels == 200000);
  spec.fps.reset();
  CHECK(video_settings(spec, folder, {})->frame_list_fps == 24);  // the folder's is of files
}

TEST_CASE("Limits that cross are refused with who set them") {
  VideoSpec spec;
  spec.max_pixels = 100;
  const auto pixels = video_settings(spec, {}, {});
  REQUIRE_FALSE(pixels.ok());
  CHECK(
      pixels.error().message ==
      "key 'data.video.max_pixels': the limits of videos are min_pixels 100352 (the default of the original processor) "
      "and max_pixels 100; valid: min_pixels <= max_pixels");
  VideoProcessorConfig folder;
  folder.min_frames = 9;
  spec = {};
  spec.max_frames = 8;
  const auto frames = video_settings(spec, folder, {});
  REQUIRE_FALSE(frames.ok());
  CHECK(frames.error().message.find("min_frames 9 (of the model folder) and max_frames 8") != std::string::npos);
}

TEST_CASE("With a share of all pixels a frame's limit falls with their number, but not below the least") {
  VideoProcessorConfig folder;
  folder.cap_pixels_per_frame = true;
  folder.max_video_tokens = 1000;
  folder.min_pixels = 1000;
  folder.max_pixels = 500000;
  const auto settings = video_settings({}, folder, {});
  REQUIRE(settings.ok());
  CHECK(settings->max_pixels_of(2) == 500000);
  CHECK(settings->max_pixels_of(8) == 176400);  // 1000 * 28^2 * 0.9 * 2 / 8
  CHECK(settings->max_pixels_of(4000) == 1050);
  folder.cap_pixels_per_frame = false;
  CHECK(video_settings({}, folder, {})->max_pixels_of(4000) == 500000);
}

}  // namespace
}  // namespace troupe
