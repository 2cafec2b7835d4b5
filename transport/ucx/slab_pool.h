#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// Receive buffers that are used again: in a steady state a step's messages land where the last step's did, in pages that exist.
/// A slab goes back when its last holder lets go, even after the pool's maker has gone. Thread-safe.
class SlabPool : public std::enable_shared_from_this<SlabPool> {
 public:
  struct Slab {
    std::byte* data = nullptr;
    size_t bytes = 0;  // at least what was asked for
    std::shared_ptr<const void> owner;
  };
  /// Free slabs above `retained_bytes` in all are given back to the system.
  static std::shared_ptr<SlabPool> create(size_t retained_bytes);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  /// A slab of at least `bytes`; data is aligned to 64 bytes and not null, for zero bytes too.
  Slab take(size_t bytes);
  /// Slabs that the system was asked for so far: stands still in a steady state.
  size_t allocations() const;

 private:
  explicit SlabPool(size_t retained_bytes) : retained_limit_(retained_bytes) {}
  void give_back(std::byte* data, size_t bytes);

  mutable std::mutex mutex_;
  std::map<size_t, std::vector<std::byte*>> free_;
  const size_t retained_limit_;
  size_t retained_bytes_ = 0, allocations_ = 0;
};

}  // namespace troupe
