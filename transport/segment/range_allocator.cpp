#include "transport/segment/range_allocator.h"

#include <iterator>

#include "base/result.h"

namespace troupe {

RangeAllocator::RangeAllocator(size_t bytes) : free_bytes_(bytes) {
  if (bytes > 0) free_[0] = bytes;
}

std::optional<size_t> RangeAllocator::take(size_t bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < bytes) continue;
    const auto [offset, size] = *it;
    free_.erase(it);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    taken_[offset] = bytes;
    free_bytes_ -= bytes;
    return offset;
  }
  return std::nullopt;
}

void RangeAllocator::give_back(size_t offset) {
  const auto found = taken_.find(offset);
  TROUPE_CHECK(found != taken_.end());
  size_t bytes = found->second;
  taken_.erase(found);
  free_bytes_ += bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

}  // namespace troupe
