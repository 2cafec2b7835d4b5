#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

std::string le(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

/// A BMP file with a 40-byte header; `extra`: masks or palette.
std::string bmp(int32_t width, int32_t height, uint32_t bits, uint32_t compression, const std::string& extra,
                const std::string& data) {
  const uint32_t offset = 54 + static_cast<uint32_t>(extra.size());
  return "BM" + le(offset + static_cast<uint32_t>(data.size()), 4) + le(0, 4) + le(offset, 4) + le(40, 4) +
         le(static_cast<uint32_t>(width), 4) + le(static_cast<uint32_t>(height), 4) + le(1, 2) + le(bits, 2) +
         le(compression, 4) + std::string(20, '\0') + extra + data;
}

std::vector<int> pixels(const std::string& file) {
  const auto image = decode_image(file);
  INFO((image.ok() ? "" : image.error().message));
  REQUIRE(image.ok());
  return {image->pixels.begin(), image->pixels.end()};
}

const std::string kPalette = le(0, 4) + le(0xFF0000, 4) + le(0x00FF00, 4) + le(0x0000FF, 4);  // black, red, green, blue

TEST_CASE("BMP: colour, grey, palette and bilevel files have their colours") {
  for (const char* name : {"rgb.bmp", "palette.bmp"}) check_close(quadrants(decoded(name)), kColours, 0);
  check_close(quadrants(decoded("grey.bmp")), kGreys, 0);
  check_close(quadrants(decoded("bilevel.bmp")), {kBlack, kWhite, kBlack, kWhite}, 0);
  check_cut_off("rgb.bmp");
}

TEST_CASE("A BMP of 32 bits is opaque unless its masks name alpha") {
  const std::string data = le(0x80FF0000, 4);
  CHECK(pixels(bmp(1, 1, 32, 0, "", data)) == std::vector<int>{255, 0, 0});
  CHECK(pixels(bmp(1, 1, 32, 6, le(0xFF0000, 4) + le(0xFF00, 4) + le(0xFF, 4) + le(0xFF000000, 4), data)) ==
        std::vector<int>{255, 127, 127});
}

TEST_CASE("A BMP of 16 bits follows its masks, five bits a channel without any") {
  const std::string data = le(0x7C00, 2) + le(0x001F, 2);
  CHECK(pixels(bmp(2, 1, 16, 0, "", data)) == std::vector<int>{255, 0, 0, 0, 0, 255});
  CHECK(pixels(bmp(2, 1, 16, 3, le(0xF800, 4) + le(0x07E0, 4) + le(0x001F, 4), le(0xF800, 2) + le(0x0400, 2))) ==
        std::vector<int>{255, 0, 0, 0, 130, 0});
}

TEST_CASE("A BMP with a negative height is stored from the top") {
  const std::string rows = le(0x0000FF, 3) + le(0, 1) + le(0xFF0000, 3) + le(0, 1);
  CHECK(pixels(bmp(1, 2, 24, 0, "", rows)) == std::vector<int>{255, 0, 0, 0, 0, 255});
  CHECK(pixels(bmp(1, -2, 24, 0, "", rows)) == std::vector<int>{0, 0, 255, 255, 0, 0});
}

TEST_CASE("Run-length data: runs, single numbers, jumps and line ends") {
  // Bottom row: two red, one green; then a jump one to the right on the row above: one blue.
  const std::string eight = {2, 1, 1, 2, 0, 0, 0, 2, 1, 0, 1, 3, 0, 1};
  const std::vector<int> expected{0, 0, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 255, 0, 0, 0, 255, 0};
  CHECK(pixels(bmp(3, 2, 8, 1, kPalette + std::string(252 * 4, '\0'), eight)) == expected);
  const std::string four = {3, 0x11, 0, 0, 0, 3, 0x12, 0x30, 0, 1};  // a run of red; red, green, blue literally
  CHECK(pixels(bmp(3, 2, 4, 2, kPalette + std::string(12 * 4, '\0'), four)) ==
        std::vector<int>{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 0, 0, 255, 0, 0, 255, 0, 0});
  CHECK_FALSE(decode_image(bmp(3, 2, 8, 1, kPalette + std::string(252 * 4, '\0'), {2, 1})).ok());
}

TEST_CASE("A BMP in a form that is not read is refused by name") {
  CHECK(reason(bmp(1, 1, 24, 4, "", "    ")).find("24 bits a pixel and compression 4") != std::string::npos);
  CHECK(reason("BM....").find("header of 0 bytes") != std::string::npos);
}

}  // namespace
}  // namespace troupe
