#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("WebP: lossless and lossy files have their colours") {
  check_close(quadrants(decoded("rgb.webp")), kColours, 0);
  check_close(quadrants(decoded("lossy.webp")), kColours, 8);
}

TEST_CASE("D15: alpha of a WebP file is laid on white") { check_close(quadrants(decoded("alpha.webp")), kPale, 0); }

TEST_CASE("D14: a WebP file's orientation is applied") {
  CHECK(read_image_header(picture("orientation6.webp"))->orientation == 6);
  check_close(quadrants(decoded("orientation6.webp")), kUpright[5], 0);
}

TEST_CASE("An animated WebP shows its first frame on the whole canvas") {
  const auto image = decoded("frames.webp");
  CHECK(image.width == 48);
  CHECK(image.height == 32);
  check_close(quadrants(image), kColours, 0);
}

TEST_CASE("D10: a WebP file that ends early is refused by its header") {
  for (const char* name : {"rgb.webp", "lossy.webp"}) check_cut_off(name);
}

}  // namespace
}  // namespace troupe
