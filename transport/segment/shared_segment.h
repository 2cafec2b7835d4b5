#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "transport/channel/slab_pool.h"
#include "transport/segment/range_allocator.h"

/// Memory of one node that one process writes and others read: how host tensors cross between processes without a copy.
/// It has no name (memfd), so nothing can be left behind: the kernel frees it with its last holder, however that ends.
namespace troupe {

/// The writer's side. Pages exist from take() until the pool lets go of them. Thread-safe.
class SharedSegment {
 public:
  /// `bytes` bounds what may be in use; memory is taken as it is needed. `retained_bytes` as in SlabPool.
  static Result<std::shared_ptr<SharedSegment>> create(size_t bytes, size_t retained_bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  /// What a process of the same node needs to read this segment: a line of text.
  std::string ticket() const;
  /// A slab of at least `bytes`; nothing when the segment or the node's memory is used up. Its owner keeps the segment.
  std::optional<SlabPool::Slab> take(size_t bytes);
  /// The place of `data` in the segment; nothing when it lies elsewhere.
  std::optional<size_t> offset_of(const std::byte* data) const;
  /// From now on pages are freed with the last reader, not with their slab: who still reads goes on to see them.
  void leave_to_readers();
  size_t allocations() const { return pool_->allocations(); }

 private:
  struct Mapping;
  SharedSegment(std::shared_ptr<Mapping> mapping, size_t retained_bytes);

  const std::shared_ptr<Mapping> mapping_;  // shared with slabs that outlive the segment
  const std::shared_ptr<SlabPool> pool_;
};

/// The reader's side of another process's segment (or of one's own). Reading stays possible after the writer has ended.
class SegmentView {
 public:
  /// Unavailable when the ticket's segment cannot be reached from this process: another node, another container.
  static Result<std::shared_ptr<const SegmentView>> open(const std::string& ticket);
  ~SegmentView();
  SegmentView(const SegmentView&) = delete;
  SegmentView& operator=(const SegmentView&) = delete;

  /// Null when [offset, offset + bytes) is not inside the segment.
  const std::byte* at(size_t offset, size_t bytes) const;

 private:
  SegmentView(const std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  const std::byte* data_;
  size_t bytes_;
};

}  // namespace troupe
