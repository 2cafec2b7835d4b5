#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace troupe {

/// Hands out parts of the range [0, bytes): first fit, neighbours that are free grow together. Pure arithmetic on
/// offsets; touches no memory. Owner only. Cost: O(free parts) to take, O(log free parts) to give back.
class RangeAllocator {
 public:
  explicit RangeAllocator(size_t bytes);
  /// The offset of `bytes` (more than 0) that are nobody else's; nothing when no free part is large enough.
  std::optional<size_t> take(size_t bytes);
  /// Gives back what take() gave out at `offset`.
  void give_back(size_t offset);
  size_t free_bytes() const { return free_bytes_; }

 private:
  std::map<size_t, size_t> free_, taken_;  // offset to bytes
  size_t free_bytes_;
};

}  // namespace troupe
