#include "transport/segment/large_copy.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

using namespace troupe;

TEST_CASE("a copy is whole at every size and place, and touches nothing beside it") {
  constexpr size_t kMost = (size_t{16} << 20) + 1000;
  std::vector<std::byte> from(kMost + 256);
  std::mt19937_64 random(7);
  for (size_t at = 0; at + 8 <= from.size(); at += 8) {
    const uint64_t value = random();
    std::memcpy(from.data() + at, &value, 8);
  }
  std::vector<std::byte> to(kMost + 256);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, size_t{16} << 20, kMost - 1, kMost})
    for (const size_t source : {0, 3})
      for (const size_t target : {0, 1, 64, 77}) {
        std::memset(to.data(), 0x5a, to.size());
        copy_to_reader(to.data() + target, from.data() + source, bytes);
        CAPTURE(bytes, source, target);
        CHECK(std::memcmp(to.data() + target, from.data() + source, bytes) == 0);
        CHECK((target == 0 || to[target - 1] == std::byte{0x5a}));
        CHECK(to[target + bytes] == std::byte{0x5a});
      }
}
