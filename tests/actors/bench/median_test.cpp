#include "actors/bench/median.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("the median is the middle of the values in whatever order, of an even number the upper one") {
  CHECK(median({7}) == 7);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({4, 2, 8, 6}) == 6);
}
