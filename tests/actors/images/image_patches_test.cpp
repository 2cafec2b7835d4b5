#include "actors/images/image_patches.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

TEST_CASE("Grids and patches equal those of the published image processor") {
  const std::string folder = TROUPE_PATCHES_REFERENCE;
  const auto manifest = nlohmann::json::parse(fixture::contents(folder + "/manifest.json"));
  const VisionConfig vision;
  const PixelValues values;
  int compared = 0;
  for (const auto& entry : manifest.at("pictures")) {
    const auto name = entry.at("file").get<std::string>();
    INFO(name);
    const std::string bytes = fixture::contents(folder + "/" + name);
    const auto header = read_image_header(bytes);
    REQUIRE(header.ok());
    const auto scaled =
        scaled_size({header->height(), header->width()}, 28, manifest.at("min_pixels"), manifest.at("max_pixels"));
    REQUIRE(scaled.ok());
    const IndexedImage grid = grid_of(*scaled, vision.patch_size);
    CHECK(std::vector<int64_t>{grid.t, grid.h, grid.w} == entry.at("grid").get<std::vector<int64_t>>());
    const auto image = decode_image(bytes);
    REQUIRE(image.ok());
    const auto patches = image_patches(*image, *scaled, vision, values);
    const std::string raw = fixture::contents(folder + "/" + name + ".f32");
    REQUIRE(raw.size() == static_cast<size_t>(patches.numel()) * sizeof(float));
    std::vector<float> expected(static_cast<size_t>(patches.numel()));
    std::memcpy(expected.data(), raw.data(), raw.size());
    double worst = 0;
    const float* here = patches.data_ptr<float>();
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(here[i]) - expected[i]));
    // Lossless files agree to rounding of fp32; JPEG decoders may differ by one step of a channel.
    const double step = 1.0 / 255 / 0.26130258;
    CHECK(worst <= (name.ends_with(".jpg") ? 1.01 * step : 1e-5));
    ++compared;
  }
  CHECK(compared == 30);
}

}  // namespace
}  // namespace troupe
