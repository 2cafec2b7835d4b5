#include "actors/host/memory.h"

#include <ATen/ops/empty.h>

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("tensor memory is counted for the owner that runs, and its peak is kept") {
  install_counting_allocator();
  count_allocations_for(7);
  reset_peak(7);
  const int64_t before = live_bytes(7);
  {
    const at::Tensor a = at::empty({1 << 18}, at::kFloat);
    CHECK(live_bytes(7) - before >= int64_t{1} << 20);
    count_allocations_for(8);
    const at::Tensor b = at::empty({1 << 10}, at::kFloat);
    CHECK(live_bytes(8) >= 4096);
  }
  CHECK(live_bytes(7) == before);  // freed bytes go back to the owner that took them, whoever runs
  CHECK(peak_bytes(7) - before >= int64_t{1} << 20);
  reset_peak(7);
  CHECK(peak_bytes(7) == before);
  count_allocations_for(0);
}

TEST_CASE("the resident peak of a process is positive") { CHECK(peak_resident_bytes() > (1 << 20)); }
