#pragma once

#include <memory>
#include <memory_resource>

namespace troupe {

/// An allocator for std::allocate_shared and the like whose memory comes from a pool and goes back to it. Holds the
/// pool: a control block is freed after the object that it counted. As thread-safe as the pool.
template <typename T>
struct PooledAllocator {
  using value_type = T;
  explicit PooledAllocator(std::shared_ptr<std::pmr::memory_resource> from) : pool(std::move(from)) {}
  template <typename U>
  PooledAllocator(const PooledAllocator<U>& other) : pool(other.pool) {}  // NOLINT: allocators convert
  T* allocate(size_t count) { return static_cast<T*>(pool->allocate(count * sizeof(T), alignof(T))); }
  void deallocate(T* data, size_t count) { pool->deallocate(data, count * sizeof(T), alignof(T)); }
  friend bool operator==(const PooledAllocator& a, const PooledAllocator& b) { return a.pool == b.pool; }

  std::shared_ptr<std::pmr::memory_resource> pool;
};

}  // namespace troupe
