#include "base/utf8.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("Overlong forms, surrogates, cut sequences and values past U+10FFFF are no UTF-8") {
  CHECK(first_invalid_utf8("a\u00E9\u20AC\U0001F600") == std::string_view::npos);
  CHECK(first_invalid_utf8("a\xC0\x80") == 1);
  CHECK(first_invalid_utf8("\xE0\x80\x80") == 0);
  CHECK(first_invalid_utf8("ab\xED\xA0\x80") == 2);
  CHECK(first_invalid_utf8("\xF0\x9F\x98") == 0);
  CHECK(first_invalid_utf8("\xF4\x90\x80\x80") == 0);
  CHECK(first_invalid_utf8("\x80") == 0);
}

}  // namespace
}  // namespace troupe
