#include "actors/host/memory.h"

#include <ATen/ops/empty.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose allocators give nothing out again at once
TEST_CASE("memory that was freed serves the same size again") {
  install_counting_allocator();
  constexpr int64_t kFloats = 56448;
  std::vector<at::Tensor> kept;
  for (int i = 0; i < 8; ++i) {
    at::Tensor one = at::empty({kFloats}, at::kFloat);
    CHECK(reinterpret_cast<uintptr_t>(one.data_ptr()) % 64 == 0);
    kept.push_back(at::empty({kFloats / 2}, at::kFloat));  // so that what is freed lies between others
    const void* const was = one.data_ptr();
    one = at::Tensor();
    kept.push_back(at::empty({kFloats}, at::kFloat));
    CHECK(kept.back().data_ptr() == was);
  }
}
#endif

TEST_CASE("the resident peak of a process is positive") { CHECK(peak_resident_bytes() > (1 << 20)); }
