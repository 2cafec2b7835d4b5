#include "transport/channel/slab_pool.h"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace troupe;

TEST_CASE("slabs are large enough, aligned and used again") {
  const auto pool = SlabPool::create(1 << 20);
  for (int round = 0; round < 3; ++round) {
    for (const size_t bytes : {0, 1, 4096, 4097, 5000, 100000}) {
      const auto slab = pool->take(bytes);
      CHECK(slab.bytes >= bytes);
      CHECK(slab.bytes <= std::max<size_t>(4096, bytes + bytes / 4));
      CHECK(reinterpret_cast<uintptr_t>(slab.data) % 64 == 0);
      for (size_t i = 0; i < bytes; ++i) slab.data[i] = std::byte{1};
    }
  }
  CHECK(pool->allocations() == 3);  // up to 4096, up to 5120, 100000's class
}

TEST_CASE("two slabs held at once are not the same") {
  const auto pool = SlabPool::create(1 << 20);
  const auto first = pool->take(10), second = pool->take(10);
  CHECK(first.data != second.data);
}

TEST_CASE("a slab outlives its pool's maker, and what exceeds the limit is given back") {
  auto pool = SlabPool::create(4096);
  auto slab = pool->take(8000), small = pool->take(10);
  slab.owner.reset();  // above the limit: freed
  small.owner.reset();
  (void)pool->take(8000);
  (void)pool->take(10);
  CHECK(pool->allocations() == 3);
  auto last = pool->take(10);
  pool.reset();
  last.data[0] = std::byte{1};
  CHECK(last.data[0] == std::byte{1});
}
