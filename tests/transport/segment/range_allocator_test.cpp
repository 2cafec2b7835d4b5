#include "transport/segment/range_allocator.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace troupe;

TEST_CASE("parts of a range do not overlap, and what is given back grows together") {
  RangeAllocator ranges(1000);
  std::mt19937 random(1);
  struct Part {
    size_t offset, bytes;
  };
  std::vector<Part> parts;
  for (int i = 0; i < 2000; ++i) {
    if (!parts.empty() && random() % 2 == 0) {
      const size_t chosen = random() % parts.size();
      ranges.give_back(parts[chosen].offset);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(chosen));
      continue;
    }
    const size_t bytes = 1 + random() % 200;
    const auto offset = ranges.take(bytes);
    if (!offset) continue;
    REQUIRE(*offset + bytes <= 1000);
    for (const Part& part : parts) {
      REQUIRE((*offset + bytes <= part.offset || part.offset + part.bytes <= *offset));
    }
    parts.push_back({*offset, bytes});
  }
  for (const Part& part : parts) ranges.give_back(part.offset);
  CHECK(ranges.free_bytes() == 1000);
  CHECK(ranges.take(1000) == 0);
  CHECK_FALSE(ranges.take(1).has_value());
}
