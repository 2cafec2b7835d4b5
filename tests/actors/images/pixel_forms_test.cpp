#include "actors/images/pixel_forms.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace troupe {
namespace {

TEST_CASE("Laying on white rounds to the nearest for every colour and alpha") {
  std::vector<uint8_t> rgba;
  for (unsigned colour = 0; colour < 256; ++colour)
    for (unsigned alpha = 0; alpha < 256; ++alpha)
      rgba.insert(rgba.end(), {static_cast<uint8_t>(colour), 0, 255, static_cast<uint8_t>(alpha)});
  lay_on_white(rgba);
  REQUIRE(rgba.size() == 3 * 65536);
  bool right = true;
  for (size_t i = 0; i < 65536; ++i) {
    const double colour = static_cast<double>(i / 256), alpha = static_cast<double>(i % 256) / 255;
    right &= std::abs(rgba[3 * i] - (colour * alpha + 255 * (1 - alpha))) <= 0.5 + 1e-9;
    right &= rgba[3 * i + 2] == 255;
  }
  CHECK(right);
}

TEST_CASE("Turning and turning back gives the stored picture") {
  RgbImage stored{5, 3, {}};
  for (uint8_t i = 0; i < 45; ++i) stored.pixels.push_back(i);
  for (const auto& [there, back] : {std::pair(2, 2), {3, 3}, {4, 4}, {5, 5}, {6, 8}, {7, 7}, {8, 6}}) {
    const auto turned = upright(stored, there);
    CHECK(turned.width == (there >= 5 ? 3 : 5));
    CHECK(turned.pixels != stored.pixels);
    CHECK(upright(turned, back).pixels == stored.pixels);
  }
}

}  // namespace
}  // namespace troupe
