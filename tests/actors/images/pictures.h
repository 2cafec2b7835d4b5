#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "actors/images/image_file.h"
#include "tests/actors/data/fixture.h"

/// The fixture's pictures: 48 x 32 pixels in four quadrants, red, green / blue, white.
namespace troupe::fixture {

using Colour = std::array<int, 3>;
using Quadrants = std::array<Colour, 4>;  // top left, top right, bottom left, bottom right
inline constexpr Colour kRed{255, 0, 0}, kGreen{0, 255, 0}, kBlue{0, 0, 255}, kWhite{255, 255, 255}, kBlack{0, 0, 0};
inline constexpr Quadrants kColours{kRed, kGreen, kBlue, kWhite};
inline constexpr Quadrants kGreys{Colour{76, 76, 76}, Colour{150, 150, 150}, Colour{29, 29, 29}, kWhite};
/// The colours at half alpha on white.
inline constexpr Quadrants kPale{Colour{255, 127, 127}, Colour{127, 255, 127}, Colour{127, 127, 255}, kWhite};
/// What each Exif orientation, 1 to 8, makes of the stored quadrants.
inline constexpr std::array<Quadrants, 8> kUpright{{kColours,
                                                    {kGreen, kRed, kWhite, kBlue},
                                                    {kWhite, kBlue, kGreen, kRed},
                                                    {kBlue, kWhite, kRed, kGreen},
                                                    {kRed, kBlue, kGreen, kWhite},
                                                    {kBlue, kRed, kWhite, kGreen},
                                                    {kWhite, kGreen, kBlue, kRed},
                                                    {kGreen, kWhite, kRed, kBlue}}};

inline std::string picture(const std::string& name) { return contents(path("pictures/" + name)); }

inline RgbImage decoded(const std::string& name) {
  auto image = decode_image(picture(name));
  INFO(name << (image.ok() ? "" : ": " + image.error().message));
  REQUIRE(image.ok());
  REQUIRE(image->pixels.size() == static_cast<size_t>(image->width * image->height * 3));
  return std::move(image).value();
}

/// The colours in the middle of the four quadrants.
inline Quadrants quadrants(const RgbImage& image) {
  Quadrants out{};
  for (size_t q = 0; q < 4; ++q) {
    const int64_t x = image.width * (q % 2 == 0 ? 1 : 3) / 4, y = image.height * (q < 2 ? 1 : 3) / 4;
    for (size_t c = 0; c < 3; ++c) out[q][c] = image.pixels[static_cast<size_t>(3 * (y * image.width + x)) + c];
  }
  return out;
}

inline void check_close(const Quadrants& here, const Quadrants& expected, int tolerance) {
  for (size_t q = 0; q < 4; ++q)
    for (size_t c = 0; c < 3; ++c) {
      INFO("quadrant " << q << " channel " << c << ": " << here[q][c] << " for " << expected[q][c]);
      CHECK(std::abs(here[q][c] - expected[q][c]) <= tolerance);
    }
}

/// Column x of the ramp pictures holds the 16-bit grey x * 0x0500 + 0x00FF.
inline void check_ramp(const std::string& name) {
  const auto ramp = decoded(name);
  for (int64_t x = 0; x < 48; ++x) CHECK(ramp.pixels[static_cast<size_t>(3 * x)] == ((x * 0x0500 + 0x00FF) >> 8));
}

/// Why a file is refused by its header, or nothing.
inline std::string reason(const std::string& bytes) {
  const auto header = read_image_header(bytes);
  return header.ok() ? "" : header.error().message;
}

/// Seven tenths of a file are refused by its header.
inline void check_cut_off(const std::string& name) {
  const std::string whole = picture(name);
  INFO(name);
  CHECK(reason(whole).empty());
  CHECK(reason(whole.substr(0, whole.size() * 7 / 10)).find("cut off") != std::string::npos);
}

}  // namespace troupe::fixture
