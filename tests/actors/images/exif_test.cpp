#include "actors/images/exif.h"

#include <catch2/catch.hpp>
#include <string>

namespace troupe {
namespace {

TEST_CASE("Orientation is read in both byte orders, with and without the mark before it") {
  const std::string little("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26);
  const std::string big("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0", 26);
  CHECK(exif_orientation(little) == 6);
  CHECK(exif_orientation(big) == 8);
  CHECK(exif_orientation(std::string("Exif\0\0", 6) + little) == 6);
}

TEST_CASE("A block that is cut, empty or states no valid orientation means upright") {
  const std::string nine("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0\0\0\0\0", 26);
  CHECK(exif_orientation(nine) == 1);
  CHECK(exif_orientation("") == 1);
  CHECK(exif_orientation(nine.substr(0, 20)) == 1);
  CHECK(exif_orientation("hello") == 1);
}

}  // namespace
}  // namespace troupe
