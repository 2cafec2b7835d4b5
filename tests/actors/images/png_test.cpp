#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("PNG: colour, palette and bilevel files have their colours") {
  for (const char* name : {"rgb.png", "palette.png"}) check_close(quadrants(decoded(name)), kColours, 0);
  check_close(quadrants(decoded("bilevel.png")), {kBlack, kWhite, kBlack, kWhite}, 0);
}

TEST_CASE("D15: a grey PNG becomes RGB and alpha is laid on white") {
  check_close(quadrants(decoded("grey.png")), kGreys, 0);
  check_close(quadrants(decoded("alpha.png")), kPale, 0);
  check_close(quadrants(decoded("grey_alpha.png")),
              {Colour{165, 165, 165}, Colour{202, 202, 202}, Colour{142, 142, 142}, kWhite}, 1);
  check_close(quadrants(decoded("palette_clear.png")), {kWhite, kGreen, kBlue, kWhite}, 0);
}

TEST_CASE("D16: 16-bit grey in a PNG is read by its high byte") { check_ramp("grey16.png"); }

TEST_CASE("D14: a PNG's orientation is applied") {
  CHECK(read_image_header(picture("orientation6.png"))->orientation == 6);
  check_close(quadrants(decoded("orientation6.png")), kUpright[5], 0);
}

TEST_CASE("An animated PNG shows its first frame") { check_close(quadrants(decoded("frames.png")), kColours, 0); }

TEST_CASE("D10: damaged PNG data are an error") {
  check_cut_off("rgb.png");
  std::string png = picture("rgb.png");
  png[png.size() - 30] = static_cast<char>(png[png.size() - 30] ^ 0x55);
  CHECK_FALSE(decode_image(png).ok());
}

}  // namespace
}  // namespace troupe
