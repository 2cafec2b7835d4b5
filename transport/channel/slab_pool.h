#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <vector>

namespace troupe {

/// Receive buffers that are used again: in a steady state a step's messages land where the last step's did, in pages
/// that exist. A slab goes back when its last holder lets go, even after the pool's maker has gone. Thread-safe.
class SlabPool : public std::enable_shared_from_this<SlabPool> {
 public:
  struct Slab {
    std::byte* data = nullptr;
    size_t bytes = 0;  // at least what was asked for
    std::shared_ptr<const void> owner;
  };
  /// Where slabs come from; `allocate` throws when there is nothing left.
  struct Source {
    std::function<std::byte*(size_t)> allocate;
    std::function<void(std::byte*, size_t)> release;
  };
  /// Free slabs above `retained_bytes` in all are given back to the source; without one they are memory of the process.
  static std::shared_ptr<SlabPool> create(size_t retained_bytes);
  static std::shared_ptr<SlabPool> create(size_t retained_bytes, Source source);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  /// A slab of at least `bytes`; data is aligned to 64 bytes at least and not null, for zero bytes too.
  Slab take(size_t bytes);
  /// Slabs that the source was asked for so far: stands still in a steady state.
  size_t allocations() const;

 private:
  SlabPool(size_t retained_bytes, Source source);
  void give_back(std::byte* data, size_t bytes);
  void drop_free();

  const Source source_;
  const std::shared_ptr<std::pmr::synchronized_pool_resource> owners_;  // of the slabs' control blocks
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<std::byte*>> free_;
  const size_t retained_limit_;
  size_t retained_bytes_ = 0, allocations_ = 0;
};

}  // namespace troupe
