#include "base/log/log_tag.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("A tag is read back as it was written, and what only looks like one is none") {
  const auto tag = tag_of_line(log_tag("vision", 12) + "loading");
  REQUIRE(tag);
  CHECK(tag->group == "vision");
  CHECK(tag->rank == 12);
  for (const char* line : {"", "plain", "[text/] x", "[/1] x", "[a path/b] x", "[text/1 x", "[text/-1] x",
                           "[2026-11-28] [warning] /a/1] x"})
    CHECK_FALSE(tag_of_line(line));
}
