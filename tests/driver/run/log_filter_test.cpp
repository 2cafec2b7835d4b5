#include "driver/run/log_filter.h"

#include <catch2/catch.hpp>

using troupe::driver::LogFilter;

TEST_CASE("Lines of other actors are left out, untagged lines and lines of a host are not") {
  LogFilter filter("text", 1);
  CHECK(filter.pass("plain\n[text/1] mine\n[text/0] other\n[vision/1] other\n[a path/b] plain\n") ==
        "plain\n[text/1] mine\n[a path/b] plain\n");
}

TEST_CASE("A line cut between two pieces is judged as a whole") {
  LogFilter filter("text", -1);
  CHECK(filter.pass("[vis").empty());
  CHECK(filter.pass("ion/0] x\n[text/3] y").empty());
  CHECK(filter.rest() == "[text/3] y");
  CHECK(filter.rest().empty());
}

TEST_CASE("Without group and rank everything passes") {
  LogFilter filter("", -1);
  CHECK(filter.pass("[text/1] a\n[vision/0] b\n") == "[text/1] a\n[vision/0] b\n");
}
