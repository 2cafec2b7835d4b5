#include "base/config/scalars.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("integers are decimal numbers or products of them") {
  CHECK(parse_integer("12") == 12);
  CHECK(parse_integer("-3") == -3);
  CHECK(parse_integer("4*28*28") == 3136);
  CHECK(parse_integer("4 * 28") == 112);
  CHECK(parse_integer("0") == 0);
  for (const char* bad : {"", "*", "4*", "*4", "4**2", "010", "0x10", "1_000", "1.0", "1e3", "1:30",
                          "9223372036854775808", "4294967296*4294967296", "- 3"})
    CHECK_FALSE(parse_integer(bad).has_value());
}

TEST_CASE("numbers are decimal, with or without exponent, and finite") {
  CHECK(parse_number("1e-5") == 1e-5);
  CHECK(parse_number("2.0e-6") == 2e-6);
  CHECK(parse_number("+.5") == 0.5);
  CHECK(parse_number("7") == 7.0);
  for (const char* bad : {"", ".", ".nan", ".inf", "nan", "inf", "1e400", "1e", "e5", "0x1p3", "1,5", "1_0.0", "no"})
    CHECK_FALSE(parse_number(bad).has_value());
}

TEST_CASE("pixel sizes are width times height") {
  REQUIRE(parse_pixel_size("640x480").has_value());
  CHECK(parse_pixel_size("640x480")->width == 640);
  CHECK(parse_pixel_size("640x480")->height == 480);
  for (const char* bad : {"448", "448x", "x448", "0x448", "448x448x3", "4.5x4", "99999999x1"})
    CHECK_FALSE(parse_pixel_size(bad).has_value());
}

TEST_CASE("the written form of a number reads back as the same value") {
  for (double v : {1e-5, 0.1, 1.0 / 3.0, 0.0, 1e300, 123456789.0, 5e-324}) {
    const auto back = parse_number(number_text(v));
    REQUIRE(back.has_value());
    CHECK(*back == v);
  }
}

TEST_CASE("durations have units or are seconds") {
  CHECK(parse_duration("500ms") == std::chrono::milliseconds(500));
  CHECK(parse_duration("1.5s") == std::chrono::milliseconds(1500));
  CHECK(parse_duration("2m") == std::chrono::minutes(2));
  CHECK(parse_duration("1h") == std::chrono::hours(1));
  CHECK(parse_duration("3") == std::chrono::seconds(3));
  for (const char* bad : {"", "s", "-1s", "1 day", "1e30h", "ms"}) CHECK_FALSE(parse_duration(bad).has_value());
}
