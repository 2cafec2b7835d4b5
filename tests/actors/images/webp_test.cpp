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

TEST_CASE("D14: the orientation of a WebP file's XMP is applied where its Exif states none") {
  const std::string whole = picture("orientation6.webp"), xmp = R"(<rdf:Description tiff:Orientation="8" />)";
  const auto with_xmp = [&](char flags) {
    std::string file = whole + "XMP " + std::string{static_cast<char>(xmp.size()), 0, 0, 0} + xmp;
    file[4] = static_cast<char>(file.size() - 8);
    file[20] = flags;
    return file;
  };
  REQUIRE(xmp.size() % 2 == 0);
  const auto image = decode_image(with_xmp(0x04));  // the flags say that there is XMP and no Exif
  REQUIRE(image.ok());
  check_close(quadrants(*image), kUpright[7], 0);
  CHECK(read_image_header(with_xmp(0x0C))->orientation == 6);
  CHECK(read_image_header(with_xmp(0x00))->orientation == 1);
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
