#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("JPEG: baseline, progressive and grey files have their colours") {
  for (const char* name : {"rgb.jpg", "progressive.jpg"}) check_close(quadrants(decoded(name)), kColours, 3);
  check_close(quadrants(decoded("grey.jpg")), kGreys, 2);
}

TEST_CASE("D16: a CMYK JPEG has the right colours") { check_close(quadrants(decoded("cmyk.jpg")), kColours, 6); }

TEST_CASE("D14: each orientation turns the stored JPEG upright once") {
  for (size_t o = 1; o <= 8; ++o) {
    const auto image = decoded("orientation" + std::to_string(o) + ".jpg");
    INFO("orientation " << o);
    CHECK(image.width == (o >= 5 ? 32 : 48));
    check_close(quadrants(image), kUpright[o - 1], 3);
  }
}

std::string with_xmp(const std::string& jpeg, const std::string& packet) {
  const std::string body = std::string("http://ns.adobe.com/xap/1.0/\0", 29) + packet;
  const std::string size{static_cast<char>((body.size() + 2) >> 8), static_cast<char>(body.size() + 2)};
  return jpeg.substr(0, 2) + "\xFF\xE1" + size + body + jpeg.substr(2);
}

TEST_CASE("D14: the orientation of a JPEG's XMP is applied where its Exif states none") {
  const std::string xmp = R"(<rdf:Description tiff:Orientation="6"/>)";
  const auto image = decode_image(with_xmp(picture("rgb.jpg"), xmp));
  REQUIRE(image.ok());
  check_close(quadrants(*image), kUpright[5], 3);
  CHECK(read_image_header(with_xmp(picture("orientation8.jpg"), xmp))->orientation == 8);
}

TEST_CASE("A JPEG of a kind that libjpeg does not read is refused by its header, by name") {
  const std::string whole = picture("rgb.jpg");
  const size_t frame = whole.find("\xFF\xC0");
  const auto changed = [&](size_t at, int value) {
    std::string file = whole;
    file[frame + at] = static_cast<char>(value);
    return reason(file);
  };
  for (const int marker : {0xC3, 0xC7, 0xCB, 0xCF}) CHECK(changed(1, marker) == "is a lossless JPEG; that is not read");
  for (const int marker : {0xC5, 0xC6, 0xCD, 0xCE})
    CHECK(changed(1, marker) == "is a hierarchical JPEG; that is not read");
  CHECK(changed(4, 12) == "is a JPEG of 12 bits a sample; that is not read");
  CHECK(changed(9, 2) == "is a JPEG of 2 components; that is not read");
  CHECK(changed(1, 0xC1).empty());
}

TEST_CASE("D10: damaged JPEG data are an error and never a grey picture") {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "orientation6.jpg"}) check_cut_off(name);
  CHECK(reason(picture("rgb.jpg") + std::string(100, '\0')).empty());  // padding behind the end is harmless
  const std::string whole = picture("rgb.jpg");
  // The scan is cut, yet an end mark follows: only decoding can tell.
  const auto image = decode_image(whole.substr(0, whole.size() - 24) + "\xFF\xD9");
  REQUIRE_FALSE(image.ok());
  CHECK(image.error().code == ErrorCode::kDataLoss);
}

TEST_CASE("A JPEG of a thousand scans is refused while decoding") {
  const std::string whole = picture("progressive.jpg");
  const size_t last_scan = whole.rfind("\xFF\xDA"), end = whole.rfind("\xFF\xD9");
  std::string bomb = whole.substr(0, end);
  for (int i = 0; i < 1000; ++i) bomb += whole.substr(last_scan, end - last_scan);
  const auto image = decode_image(bomb + "\xFF\xD9");
  REQUIRE_FALSE(image.ok());
  CHECK(image.error().message.find("scans") != std::string::npos);
}

}  // namespace
}  // namespace troupe
