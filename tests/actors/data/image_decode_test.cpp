#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "actors/data/image_file.h"
#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

using Colour = std::array<int, 3>;

RgbImage decoded(const std::string& name) {
  auto image = decode_image(fixture::contents(fixture::path("pictures/" + name)));
  INFO(name << (image.ok() ? "" : ": " + image.error().message));
  REQUIRE(image.ok());
  REQUIRE(image->pixels.size() == static_cast<size_t>(image->width * image->height * 3));
  return std::move(image).value();
}

/// The colours in the middle of the four quadrants: top left, top right, bottom left, bottom right.
std::array<Colour, 4> quadrants(const RgbImage& image) {
  std::array<Colour, 4> out{};
  for (size_t q = 0; q < 4; ++q) {
    const int64_t x = image.width * (q % 2 == 0 ? 1 : 3) / 4, y = image.height * (q < 2 ? 1 : 3) / 4;
    for (size_t c = 0; c < 3; ++c) out[q][c] = image.pixels[static_cast<size_t>(3 * (y * image.width + x)) + c];
  }
  return out;
}

void check_close(const std::array<Colour, 4>& here, const std::array<Colour, 4>& expected, int tolerance) {
  for (size_t q = 0; q < 4; ++q)
    for (size_t c = 0; c < 3; ++c) {
      INFO("quadrant " << q << " channel " << c << ": " << here[q][c] << " for " << expected[q][c]);
      CHECK(std::abs(here[q][c] - expected[q][c]) <= tolerance);
    }
}

constexpr Colour kRed{255, 0, 0}, kGreen{0, 255, 0}, kBlue{0, 0, 255}, kWhite{255, 255, 255};

TEST_CASE("Colours come out right of every lossless and every lossy file") {
  for (const char* name : {"rgb.png", "palette.png", "rgb.webp"})
    check_close(quadrants(decoded(name)), {kRed, kGreen, kBlue, kWhite}, 0);
  for (const char* name : {"rgb.jpg", "progressive.jpg"})
    check_close(quadrants(decoded(name)), {kRed, kGreen, kBlue, kWhite}, 3);
  check_close(quadrants(decoded("lossy.webp")), {kRed, kGreen, kBlue, kWhite}, 8);
}

TEST_CASE("D15: grey becomes RGB and alpha is laid on white") {
  const std::array<Colour, 4> grey{Colour{76, 76, 76}, Colour{150, 150, 150}, Colour{29, 29, 29}, kWhite};
  check_close(quadrants(decoded("grey.png")), grey, 0);
  check_close(quadrants(decoded("grey.jpg")), grey, 2);
  check_close(quadrants(decoded("bilevel.png")), {Colour{0, 0, 0}, kWhite, Colour{0, 0, 0}, kWhite}, 0);
  const std::array<Colour, 4> pale{Colour{255, 127, 127}, Colour{127, 255, 127}, Colour{127, 127, 255}, kWhite};
  check_close(quadrants(decoded("alpha.png")), pale, 0);
  check_close(quadrants(decoded("alpha.webp")), pale, 0);
  check_close(quadrants(decoded("grey_alpha.png")),
              {Colour{165, 165, 165}, Colour{202, 202, 202}, Colour{142, 142, 142}, kWhite}, 1);
  check_close(quadrants(decoded("palette_clear.png")), {kWhite, kGreen, kBlue, kWhite}, 0);
}

TEST_CASE("D16: CMYK has the right colours and 16-bit grey is read by its high byte") {
  check_close(quadrants(decoded("cmyk.jpg")), {kRed, kGreen, kBlue, kWhite}, 6);
  const auto ramp = decoded("grey16.png");
  for (int64_t x = 0; x < 48; ++x) CHECK(ramp.pixels[static_cast<size_t>(3 * x)] == ((x * 0x0500 + 0x00FF) >> 8));
}

TEST_CASE("D14: each orientation turns the stored picture upright once") {
  const std::array<std::array<Colour, 4>, 8> upright{{{kRed, kGreen, kBlue, kWhite},
                                                      {kGreen, kRed, kWhite, kBlue},
                                                      {kWhite, kBlue, kGreen, kRed},
                                                      {kBlue, kWhite, kRed, kGreen},
                                                      {kRed, kBlue, kGreen, kWhite},
                                                      {kBlue, kRed, kWhite, kGreen},
                                                      {kWhite, kGreen, kBlue, kRed},
                                                      {kGreen, kWhite, kRed, kBlue}}};
  for (size_t o = 1; o <= 8; ++o) {
    const auto image = decoded("orientation" + std::to_string(o) + ".jpg");
    INFO("orientation " << o);
    CHECK(image.width == (o >= 5 ? 32 : 48));
    check_close(quadrants(image), upright[o - 1], 3);
  }
  check_close(quadrants(decoded("orientation6.png")), upright[5], 0);
  check_close(quadrants(decoded("orientation6.webp")), upright[5], 0);
}

TEST_CASE("D10: damaged data are an error and never a grey picture") {
  const std::string whole = fixture::contents(fixture::path("pictures/rgb.jpg"));
  // The scan is cut, yet an end mark follows: only decoding can tell.
  const auto image = decode_image(whole.substr(0, whole.size() - 24) + "\xFF\xD9");
  REQUIRE_FALSE(image.ok());
  CHECK(image.error().code == ErrorCode::kDataLoss);
  std::string png = fixture::contents(fixture::path("pictures/rgb.png"));
  png[png.size() - 30] = static_cast<char>(png[png.size() - 30] ^ 0x55);
  CHECK_FALSE(decode_image(png).ok());
}

}  // namespace
}  // namespace troupe
