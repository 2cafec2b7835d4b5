#include "actors/images/exif.h"

#include <catch2/catch.hpp>
#include <string>

namespace troupe {
namespace {

const std::string kLittle("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26);
const std::string kBig("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0", 26);

std::string changed(std::string block, size_t at, char value) {
  block[at] = value;
  return block;
}

TEST_CASE("Orientation is read in both byte orders, with and without the mark before it") {
  CHECK(stated_orientation(kLittle, "") == 6);
  CHECK(stated_orientation(kBig, "") == 8);
  CHECK(stated_orientation(std::string("Exif\0\0", 6) + kLittle, "") == 6);
  CHECK(stated_orientation(std::string("Exif\0\0Exif\0\0", 12) + kLittle, "") == 6);
}

TEST_CASE("Orientation is read from whole numbers of 16 and 32 bits") {
  CHECK(stated_orientation(changed(kLittle, 12, 4), "") == 6);
  std::string big = changed(kBig, 13, 4);
  CHECK(stated_orientation(big, "") == 1);  // 8 << 16
  std::swap(big[19], big[21]);
  CHECK(stated_orientation(big, "") == 8);
  CHECK(stated_orientation(changed(kLittle, 14, 2), "") == 1);  // two values
}

TEST_CASE("A block that is cut, empty or states no valid orientation means upright") {
  const std::string nine = changed(kLittle, 18, 9);
  CHECK(stated_orientation(nine, "") == 1);
  CHECK(stated_orientation("", "") == 1);
  CHECK(stated_orientation(nine.substr(0, 20), "") == 1);
  CHECK(stated_orientation("hello", "") == 1);
}

TEST_CASE("XMP counts where Exif has no orientation, as an attribute or an element") {
  CHECK(stated_orientation("", R"(<rdf:Description tiff:Orientation="6"/>)") == 6);
  CHECK(stated_orientation("", "tiff:Orientation tiff:Orientation=\"x\" <tiff:Orientation>8</tiff:Orientation>") == 8);
  CHECK(stated_orientation("", R"(tiff:Orientation="9")") == 1);
  CHECK(stated_orientation("", "tiff:Orientation=\"") == 1);
  CHECK(stated_orientation(kBig, R"(tiff:Orientation="6")") == 8);
  CHECK(stated_orientation(changed(kLittle, 18, 9), R"(tiff:Orientation="6")") == 1);  // Exif has one, if a wrong one
  CHECK(stated_orientation(changed(kLittle, 10, 0x10), R"(tiff:Orientation="6")") == 6);
}

}  // namespace
}  // namespace troupe
