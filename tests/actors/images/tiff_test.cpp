#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("TIFF: colours come out right of every compression and pixel form") {
  for (const char* name : {"rgb.tif", "lzw.tif", "deflate.tif", "packbits.tif", "palette.tif"}) {
    INFO(name);
    check_close(quadrants(decoded(name)), kColours, 0);
  }
  check_close(quadrants(decoded("jpeg.tif")), kColours, 4);
  check_close(quadrants(decoded("cmyk.tif")), kColours, 0);
  check_close(quadrants(decoded("grey.tif")), kGreys, 0);
  check_close(quadrants(decoded("group4.tif")), {kBlack, kWhite, kBlack, kWhite}, 0);
}

TEST_CASE("D15, D16: alpha of a TIFF is laid on white and 16-bit grey is read by its high byte") {
  check_close(quadrants(decoded("alpha.tif")), kPale, 0);
  check_ramp("grey16.tif");
}

TEST_CASE("D14: each orientation turns the stored TIFF upright once") {
  for (size_t o = 1; o <= 8; ++o) {
    const auto image = decoded("orientation" + std::to_string(o) + ".tif");
    INFO("orientation " << o);
    CHECK(image.width == (o >= 5 ? 32 : 48));
    check_close(quadrants(image), kUpright[o - 1], 0);
  }
}

TEST_CASE("Of a TIFF with several pages the first is read") {
  check_close(quadrants(decoded("pages.tif")), kColours, 0);
}

TEST_CASE("D10: a TIFF that ends early is refused by its header, damaged data while decoding") {
  for (const char* name : {"rgb.tif", "deflate.tif"}) check_cut_off(name);
  const auto image = decode_image([] {
    std::string file = picture("deflate.tif");
    for (size_t i = 12; i < 40; ++i) file[i] = '\x55';  // Pillow writes the data first or last: both ends are hit
    for (size_t i = file.size() - 40; i < file.size() - 12; ++i) file[i] = '\x55';
    return file;
  }());
  CHECK_FALSE(image.ok());
}

}  // namespace
}  // namespace troupe
