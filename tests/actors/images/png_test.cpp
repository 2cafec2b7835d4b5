#include <zlib.h>

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

/// A chunk put behind the header of rgb.png.
std::string with_chunk(const std::string& type, const std::string& body) {
  const auto be32 = [](uint64_t v) {
    return std::string{static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
                       static_cast<char>(v)};
  };
  const std::string data = type + body, png = picture("rgb.png");
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  return png.substr(0, 33) + be32(body.size()) + data + be32(sum) + png.substr(33);
}

std::string deflated(const std::string& text) {
  std::string out(compressBound(text.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size());
  return out.substr(0, size);
}

TEST_CASE("D14: the orientation in a PNG's texts is applied: ImageMagick's Exif and XMP, plain or deflated") {
  const std::string hex = "\nexif\n      32\n45786966000049492a0008000000010012010300\n01000000060000000000\n0000\n",
                    zero(1, '\0'), xmp = R"(<rdf:Description tiff:Orientation="6"/>)",
                    raw = "Raw profile type exif" + zero, packet = "XML:com.adobe.xmp" + zero;
  for (const std::string& file : {with_chunk("tEXt", raw + hex), with_chunk("zTXt", raw + zero + deflated(hex)),
                                  with_chunk("iTXt", packet + zero + zero + zero + zero + xmp),
                                  with_chunk("iTXt", packet + "\1" + zero + "en" + zero + zero + deflated(xmp)),
                                  with_chunk("tEXt", packet + xmp)}) {
    const auto image = decode_image(file);
    REQUIRE(image.ok());
    check_close(quadrants(*image), kUpright[5], 0);
  }
  const auto stated = [](const std::string& file) { return read_image_header(file)->orientation; };
  CHECK(stated(with_chunk("tEXt", "Comment" + zero + xmp)) == 1);
  CHECK(stated(with_chunk("tEXt", raw + "no hex")) == 1);
  CHECK(stated(with_chunk("zTXt", raw + zero + "no zlib")) == 1);
  CHECK(stated(with_chunk("zTXt", packet + zero + deflated(std::string(2 << 20, ' ') + xmp))) == 1);  // bounded
}

TEST_CASE("An animated PNG shows its first frame") { check_close(quadrants(decoded("frames.png")), kColours, 0); }

TEST_CASE("A PNG of a form that the format does not have is refused by its header") {
  const auto changed = [](const char* name, size_t at, int value) {
    std::string png = picture(name);
    png[at] = static_cast<char>(value);
    return reason(png);
  };
  CHECK(changed("rgb.png", 24, 4).starts_with("is a PNG of colour type 2 with 4 bits a sample"));
  CHECK(changed("rgb.png", 25, 5).starts_with("is a PNG of colour type 5 with 8 bits a sample"));
  for (const size_t method : {26, 27}) CHECK_FALSE(changed("rgb.png", method, 1).empty());
  CHECK_FALSE(changed("rgb.png", 28, 2).empty());
  CHECK_FALSE(changed("palette.png", 24, 16).empty());
  CHECK(changed("rgb.png", 24, 16).empty());
  for (const int bits : {1, 2, 4, 8, 16}) CHECK(changed("grey.png", 24, bits).empty());
  for (const int colour : {0, 2, 3, 4, 6}) CHECK(changed("rgb.png", 25, colour).empty());
}

TEST_CASE("D10: damaged PNG data are an error") {
  check_cut_off("rgb.png");
  std::string png = picture("rgb.png");
  png[png.size() - 30] = static_cast<char>(png[png.size() - 30] ^ 0x55);
  CHECK_FALSE(decode_image(png).ok());
}

}  // namespace
}  // namespace troupe
