#include "base/printable_text.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("Control characters are spelt out, and all other text stays as it is") {
  CHECK(printable("a\x1b[2Jb\r\x7f", true) == "a\\x1b[2Jb\\x0d\\x7f");
  CHECK(printable(std::string("a\0b", 3), false) == "a\\x00b");
  CHECK(printable("\xC2\x9B"
                  "1m",
                  false) == "\\u009b1m");
  CHECK(printable("\xC2\xA0 \xE5\x9B\xBE \xC2", false) == "\xC2\xA0 \xE5\x9B\xBE \\xc2");
  CHECK(printable("caf\xE9 \xF0\x9F\x98\x80 \xED\xA0\x80 \xF0\x9F", true) ==
        "caf\\xe9 \xF0\x9F\x98\x80 \\xed\\xa0\\x80 \\xf0\\x9f");
}

TEST_CASE("What turns the direction of a line is spelt out, and letters that are written so are not") {
  CHECK(printable("a\u202Ab\u202E\u2066c\u2069", true) == "a\\u202ab\\u202e\\u2066c\\u2069");
  CHECK(printable("\u05D0\u2029\u202F\u2065\u206A \xE2\x80", false) == "\u05D0\u2029\u202F\u2065\u206A \\xe2\\x80");
}

TEST_CASE("Lines stay lines where a message may have several") {
  CHECK(printable("a\n\tb", true) == "a\n\tb");
  CHECK(printable("a\n\tb", false) == "a\\n\\tb");
}

}  // namespace
}  // namespace troupe
