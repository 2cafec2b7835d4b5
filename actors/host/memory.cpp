#include "actors/host/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace troupe {
namespace {

constexpr size_t kHeader = 64;  // keeps the payload aligned as ATen wants it
constexpr int kOwners = 64;

std::array<std::atomic<int64_t>, kOwners> g_live{};
std::array<std::atomic<int64_t>, kOwners> g_peak{};
thread_local int t_owner = 0;

struct BlockHeader {
  size_t bytes;
  int owner;
};

void count(int owner, int64_t bytes) {
  const int64_t live = g_live[static_cast<size_t>(owner)].fetch_add(bytes, std::memory_order_relaxed) + bytes;
  auto& peak = g_peak[static_cast<size_t>(owner)];
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (live > seen && !peak.compare_exchange_weak(seen, live, std::memory_order_relaxed)) {
  }
}

void release(void* payload) {
  if (!payload) return;
  char* base = static_cast<char*>(payload) - kHeader;
  BlockHeader header;
  std::memcpy(&header, base, sizeof(header));
  count(header.owner, -static_cast<int64_t>(header.bytes));
  std::free(base);
}

/// Process-wide because ATen's allocator is.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    void* base = nullptr;
    if (posix_memalign(&base, kHeader, bytes + kHeader) != 0) throw std::bad_alloc();
    const BlockHeader header = {bytes, t_owner};
    std::memcpy(base, &header, sizeof(header));
    count(t_owner, static_cast<int64_t>(bytes));
    void* payload = static_cast<char*>(base) + kHeader;
    return {payload, payload, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

void install_counting_allocator() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

void count_allocations_for(int owner) { t_owner = owner; }
int64_t live_bytes(int owner) { return g_live[static_cast<size_t>(owner)].load(std::memory_order_relaxed); }
int64_t peak_bytes(int owner) { return g_peak[static_cast<size_t>(owner)].load(std::memory_order_relaxed); }
void reset_peak(int owner) { g_peak[static_cast<size_t>(owner)].store(live_bytes(owner), std::memory_order_relaxed); }

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace troupe
