#include "actors/images/image_size.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr int64_t kMin = 56 * 56, kMax = 28 * 28 * 1280;

std::pair<int64_t, int64_t> scaled(int64_t height, int64_t width, int64_t least = kMin, int64_t most = kMax) {
  const auto size = scaled_size({height, width}, 28, least, most);
  REQUIRE(size.ok());
  return {size->height, size->width};
}

TEST_CASE("Sides are rounded to multiples, halves to even, as the published processor does") {
  CHECK(scaled(448, 448) == std::pair<int64_t, int64_t>(448, 448));
  CHECK(scaled(70, 98) == std::pair<int64_t, int64_t>(56, 112));  // 2.5 and 3.5 blocks
  CHECK(scaled(480, 640) == std::pair<int64_t, int64_t>(476, 644));
  CHECK(scaled(3000, 4000) == std::pair<int64_t, int64_t>(840, 1148));
}

TEST_CASE("D13: tiny pictures are scaled up to the least area by the same rule") {
  CHECK(scaled(1, 1) == std::pair<int64_t, int64_t>(56, 56));
  CHECK(scaled(16, 16) == std::pair<int64_t, int64_t>(56, 56));
  CHECK(scaled(9, 900) == std::pair<int64_t, int64_t>(28, 560));
}

TEST_CASE("D12: both sides keep at least one merged patch under any cap") {
  CHECK(scaled(20, 3900, kMin, 28 * 28 * 8) == std::pair<int64_t, int64_t>(28, 1092));
  CHECK(scaled(5, 5, 0, kMax) == std::pair<int64_t, int64_t>(28, 28));
  for (int64_t height = 1; height < 300; height += 7)
    for (int64_t width = height; width <= 200 * height && width < 4000; width += 191) {
      const auto size = scaled(height, width, 0, 28 * 28 * 4);
      CHECK(size.first >= 28);
      CHECK(size.second >= 28);
    }
}

TEST_CASE("D11: a side more than 200 times the other is refused with both") {
  const auto size = scaled_size({9, 2048}, 28, kMin, kMax);
  REQUIRE_FALSE(size.ok());
  CHECK(size.error().message.find("2048 x 9") != std::string::npos);
  CHECK(scaled_size({10, 2000}, 28, kMin, kMax).ok());
}

}  // namespace
}  // namespace troupe
