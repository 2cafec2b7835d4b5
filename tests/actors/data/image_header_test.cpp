#include <catch2/catch.hpp>

#include "actors/data/image_file.h"
#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

std::string picture(const std::string& name) { return fixture::contents(fixture::path("pictures/" + name)); }

std::string reason(const std::string& bytes) {
  const auto header = read_image_header(bytes);
  return header.ok() ? "" : header.error().message;
}

TEST_CASE("Size and type come from the content of every kind of file that is read") {
  for (const auto& entry : std::filesystem::directory_iterator(fixture::path("pictures"))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("frames.")) continue;
    INFO(name);
    const auto header = read_image_header(picture(name));
    REQUIRE(header.ok());
    CHECK(header->stored_width == 48);
    CHECK(header->stored_height == 32);
    const auto type = name.ends_with(".jpg")   ? ImageType::kJpeg
                      : name.ends_with(".png") ? ImageType::kPng
                                               : ImageType::kWebp;
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
  CHECK(read_image_header(picture("orientation6.png"))->orientation == 6);
  CHECK(read_image_header(picture("orientation6.webp"))->orientation == 6);
}

TEST_CASE("D09, D17: what is not read is refused by name") {
  CHECK(reason("").find("0 bytes") != std::string::npos);
  CHECK(reason("hello").find("known type") != std::string::npos);
  CHECK(reason(picture("frames.gif")).find("a GIF") != std::string::npos);
  CHECK(reason(picture("frames.webp")).find("animated WebP") != std::string::npos);
  CHECK(reason("BM....").find("a BMP") != std::string::npos);
}

TEST_CASE("D10: a file that ends before its end mark is refused by its header") {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "orientation6.jpg", "rgb.png", "rgb.webp", "lossy.webp"}) {
    const std::string whole = picture(name);
    INFO(name);
    CHECK(reason(whole).empty());
    CHECK(reason(whole.substr(0, whole.size() * 7 / 10)).find("cut off") != std::string::npos);
  }
  CHECK(reason(picture("rgb.jpg") + std::string(100, '\0')).empty());  // padding behind the end is harmless
}

TEST_CASE("No prefix of a file and no single damaged byte makes the reader go astray") {
  for (const char* name : {"orientation6.jpg", "orientation6.png", "orientation6.webp", "grey.png"}) {
    const std::string whole = picture(name);
    for (size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(reason(whole.substr(0, size)).empty());
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0xFF);
      const auto header = read_image_header(damaged);
      if (header.ok()) CHECK(header->stored_width * header->stored_height <= int64_t{1} << 28);
    }
  }
}

}  // namespace
}  // namespace troupe
