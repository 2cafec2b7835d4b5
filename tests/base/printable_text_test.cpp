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
  CHECK(printable("\xC2\xA0 \xE5\x9B\xBE \xC2", false) == "\xC2\xA0 \xE5\x9B\xBE \xC2");
}

TEST_CASE("Lines stay lines where a message may have several") {
  CHECK(printable("a\n\tb", true) == "a\n\tb");
  CHECK(printable("a\n\tb", false) == "a\\n\\tb");
}

}  // namespace
}  // namespace troupe
