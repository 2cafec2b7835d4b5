#include "actors/data/processor_config.h"

#include <catch2/catch.hpp>

#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

ProcessorConfig read(const std::string& name, const std::string& text) {
  const fixture::Scratch scratch;
  scratch.write(name, text);
  const auto config = read_processor_config(scratch.path("."));
  REQUIRE(config.ok());
  return *config;
}

TEST_CASE("All spellings of the pixel limits are read") {
  for (const char* text :
       {R"({"min_pixels": 10, "max_pixels": 20})", R"({"size": {"shortest_edge": 10, "longest_edge": 20}})",
        R"({"size": {"min_pixels": 10, "max_pixels": 20}})",
        R"({"min_pixels": 10, "max_pixels": 20, "size": {"shortest_edge": 1, "longest_edge": 2}})"}) {
    const auto config = read("preprocessor_config.json", text);
    CHECK(config.min_pixels == 10);
    CHECK(config.max_pixels == 20);
  }
  CHECK(read("processor_config.json", R"({"image_processor": {"min_pixels": 10, "image_mean": [0.5, 0.5, 0.5]}})")
            .mean[1] == 0.5);
}

TEST_CASE("A folder without a processor file gives the published defaults") {
  const auto config = read("other.json", "{}");
  CHECK_FALSE(config.min_pixels);
  CHECK(config.mean[0] == Approx(0.48145466));
  CHECK(config.deviation[2] == Approx(0.27577711));
}

TEST_CASE("Patch sizes that differ from the model's are refused with both numbers") {
  const auto config = read("preprocessor_config.json", R"({"patch_size": 16})");
  const auto status = config.check_against(VisionConfig{}, "FOLDER");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("patch_size 16") != std::string::npos);
  CHECK(status.error().message.find("14") != std::string::npos);
}

TEST_CASE("A file that is not understood is named") {
  const fixture::Scratch scratch;
  scratch.write("preprocessor_config.json", R"({"image_mean": ["a"]})");
  const auto config = read_processor_config(scratch.path("."));
  REQUIRE_FALSE(config.ok());
  CHECK(config.error().message.find("preprocessor_config.json") != std::string::npos);
}

}  // namespace
}  // namespace troupe
