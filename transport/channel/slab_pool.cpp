#include "transport/channel/slab_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "transport/channel/pooled_allocator.h"

namespace troupe {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallest = 4096;

/// Four sizes to each power of two: at most a quarter is wasted, and messages of nearly the same size share slabs.
size_t size_class(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const size_t step = std::bit_ceil(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

std::shared_ptr<SlabPool> SlabPool::create(size_t retained_bytes) {
  return create(retained_bytes,
                {[](size_t bytes) { return static_cast<std::byte*>(::operator new(bytes, kAlignment)); },
                 [](std::byte* data, size_t) { ::operator delete(data, kAlignment); }});
}

std::shared_ptr<SlabPool> SlabPool::create(size_t retained_bytes, Source source) {
  return std::shared_ptr<SlabPool>(new SlabPool(retained_bytes, std::move(source)));
}

SlabPool::SlabPool(size_t retained_bytes, Source source)
    : source_(std::move(source)),
      owners_(std::make_shared<std::pmr::synchronized_pool_resource>()),
      retained_limit_(retained_bytes) {}

SlabPool::~SlabPool() {
  for (auto& [bytes, slabs] : free_) {
    for (std::byte* slab : slabs) source_.release(slab, bytes);
  }
}

SlabPool::Slab SlabPool::take(size_t bytes) {
  const size_t size = size_class(bytes);
  std::byte* data = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto& slabs = free_[size];
    if (!slabs.empty()) {
      data = slabs.back();
      slabs.pop_back();
      retained_bytes_ -= size;
    } else {
      ++allocations_;
    }
  }
  if (data == nullptr) {
    try {
      data = source_.allocate(size);
    } catch (const std::bad_alloc&) {
      // Free slabs of other sizes may be what stands in the way.
      drop_free();
      data = source_.allocate(size);
    }
  }
  // The deleter keeps the pool alive: payloads may outlive their channel.
  auto owner = std::shared_ptr<const void>(
      data, [pool = shared_from_this(), data, size](const void*) { pool->give_back(data, size); },
      PooledAllocator<std::byte>(owners_));
  return {data, size, std::move(owner)};
}

void SlabPool::drop_free() {
  std::map<size_t, std::vector<std::byte*>> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(free_);
    retained_bytes_ = 0;
  }
  for (auto& [bytes, slabs] : dropped) {
    for (std::byte* slab : slabs) source_.release(slab, bytes);
  }
}

void SlabPool::give_back(std::byte* data, size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    if (retained_bytes_ + bytes <= retained_limit_) {
      free_[bytes].push_back(data);
      retained_bytes_ += bytes;
      return;
    }
  }
  source_.release(data, bytes);
}

size_t SlabPool::allocations() const {
  std::lock_guard lock(mutex_);
  return allocations_;
}

}  // namespace troupe
