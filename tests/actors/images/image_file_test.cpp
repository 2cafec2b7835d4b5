#include "actors/images/image_file.h"

#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("Size and type come from the content of every kind of file that is read") {
  for (const auto& entry : std::filesystem::directory_iterator(path("pictures"))) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    const auto header = read_image_header(picture(name));
    REQUIRE(header.ok());
    CHECK(header->stored_width == 48);
    CHECK(header->stored_height == 32);
    const auto type = name.ends_with(".jpg")    ? ImageType::kJpeg
                      : name.ends_with(".png")  ? ImageType::kPng
                      : name.ends_with(".webp") ? ImageType::kWebp
                      : name.ends_with(".gif")  ? ImageType::kGif
                      : name.ends_with(".bmp")  ? ImageType::kBmp
                                                : ImageType::kTiff;
    CHECK(header->type == type);
  }
}

TEST_CASE("D14: orientations that lie on the side exchange width and height") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto header = read_image_header(picture("orientation" + std::to_string(orientation) + ".jpg"));
    REQUIRE(header.ok());
    CHECK(header->orientation == orientation);
    CHECK(header->width() == (orientation >= 5 ? 32 : 48));
    CHECK(header->height() == (orientation >= 5 ? 48 : 32));
  }
}

TEST_CASE("D09: what is not read is refused by name") {
  CHECK(reason("").find("0 bytes") != std::string::npos);
  CHECK(reason("hello").find("known type") != std::string::npos);
  CHECK(reason(std::string("\0\0\0\x1C"
                           "ftypavif",
                           12))
            .find("an AVIF") != std::string::npos);
  CHECK(reason(std::string("\0\0\0\x1C"
                           "ftypheic",
                           12))
            .find("a HEIC") != std::string::npos);
}

TEST_CASE("Pictures over the limit are refused by the header, with their size") {
  std::string png = picture("rgb.png");
  png[16] = png[20] = '\x01';  // 2^24 x 2^24
  CHECK(reason(png).find("16777264 x 16777248 pixels, more than the limit") != std::string::npos);
}

TEST_CASE("No prefix of a file and no single damaged byte makes the readers go astray") {
  for (const char* name : {"orientation6.jpg", "orientation6.png", "orientation6.webp", "grey.png", "interlaced.gif",
                           "palette.bmp", "orientation6.tif", "deflate.tif"}) {
    const std::string whole = picture(name);
    for (size_t size = 0; size < whole.size(); size += 1 + size / 64) {
      const auto header = read_image_header(whole.substr(0, size));
      if (header.ok()) CHECK(size + 8 > whole.size() * 7 / 10);  // what is missing is not the picture
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0xFF);
      const auto header = read_image_header(damaged);
      if (header.ok()) CHECK(header->stored_width * header->stored_height <= kMaxImagePixels);
    }
  }
}

}  // namespace
}  // namespace troupe
