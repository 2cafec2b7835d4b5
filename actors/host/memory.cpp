#include "actors/host/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace troupe {
namespace {

constexpr size_t kAlignment = 64;  // as ATen's own allocator
constexpr int kOwners = 64;

std::array<std::atomic<int64_t>, kOwners> g_live{};
std::array<std::atomic<int64_t>, kOwners> g_peak{};
thread_local int t_owner = 0;

/// Metered accounting, owner thread only: what changed since the last reading belongs to the owner of that span.
struct Metered {
  MemoryMeter meter;
  MemoryReading last;
  int64_t reserved_peak = 0;
  std::array<int64_t, kOwners> live{}, peak{};
};
Metered g_metered;

void close_span(int owner) {
  const MemoryReading now = g_metered.meter();
  int64_t& live = g_metered.live[static_cast<size_t>(owner)];
  int64_t& peak = g_metered.peak[static_cast<size_t>(owner)];
  peak = std::max(peak, live + now.peak - g_metered.last.live);
  live += now.live - g_metered.last.live;
  g_metered.last = now;
  g_metered.reserved_peak = std::max(g_metered.reserved_peak, now.reserved_peak);
}

/// Lies right before a payload.
struct BlockHeader {
  void* base;
  size_t bytes;
  int owner;
};
constexpr size_t kMostBefore = sizeof(BlockHeader) + kAlignment - 1;

void count(int owner, int64_t bytes) {
  const int64_t live = g_live[static_cast<size_t>(owner)].fetch_add(bytes, std::memory_order_relaxed) + bytes;
  auto& peak = g_peak[static_cast<size_t>(owner)];
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (live > seen && !peak.compare_exchange_weak(seen, live, std::memory_order_relaxed)) {
  }
}

void release(void* payload) {
  if (!payload) return;
  BlockHeader header;
  std::memcpy(&header, static_cast<char*>(payload) - sizeof(header), sizeof(header));
  count(header.owner, -static_cast<int64_t>(header.bytes));
  std::free(header.base);
}

/// Process-wide because ATen's allocator is. Aligns by itself: glibc's posix_memalign searches for more than it takes,
/// so that what was freed never serves the same size again, and a process grows for thousands of steps.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    void* base = bytes > SIZE_MAX - kMostBefore ? nullptr : std::malloc(bytes + kMostBefore);
    if (!base) throw std::bad_alloc();
    const auto start = reinterpret_cast<uintptr_t>(base);
    char* payload = static_cast<char*>(base) + ((start + kMostBefore) / kAlignment * kAlignment - start);
    const BlockHeader header = {base, bytes, t_owner};
    std::memcpy(payload - sizeof(header), &header, sizeof(header));
    count(t_owner, static_cast<int64_t>(bytes));
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

void charge_by_meter(MemoryMeter meter) {
  g_metered = {};
  g_metered.meter = std::move(meter);
  if (g_metered.meter) g_metered.last = g_metered.meter();
}

void count_allocations_for(int owner) {
  if (g_metered.meter) close_span(t_owner);
  t_owner = owner;
}

int64_t live_bytes(int owner) {
  const auto at = static_cast<size_t>(owner);
  return g_metered.meter ? g_metered.live[at] : g_live[at].load(std::memory_order_relaxed);
}

int64_t peak_bytes(int owner) {
  const auto at = static_cast<size_t>(owner);
  return g_metered.meter ? g_metered.peak[at] : g_peak[at].load(std::memory_order_relaxed);
}

void reset_peak(int owner) {
  const auto at = static_cast<size_t>(owner);
  g_metered.peak[at] = g_metered.live[at];
  g_peak[at].store(g_live[at].load(std::memory_order_relaxed), std::memory_order_relaxed);
}

int64_t peak_device_bytes() { return g_metered.meter ? g_metered.reserved_peak : peak_resident_bytes(); }

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace troupe
