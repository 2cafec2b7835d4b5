#pragma once

#include <cstdint>
#include <vector>

#include "actors/nn/parameter_store.h"

/// What the elements of one rank's shard of a flat buffer are: which are decayed, which count in the global norm, which
/// parameter they belong to. Derived from the declarations once; positions are relative to the shard.
namespace troupe::optim {

/// Elements [begin, end) of the shard.
struct ElementRange {
  int64_t begin = 0, end = 0;
  bool decay = false;
};

/// Elements [begin, end) of a parameter's local tensor, found at `shard_begin` of the shard.
struct ParameterRange {
  int parameter = 0;  // index in the store
  int64_t begin = 0, end = 0;
  int64_t shard_begin = 0;
};

struct ShardSegments {
  std::vector<ElementRange> update;        // all elements that are weights, cut into pieces of at most kPiece
  std::vector<ElementRange> owned;         // elements that this rank counts in the global norm, cut likewise
  std::vector<ParameterRange> parameters;  // in memory order
};

/// Elements a task of the update or the norm: fixed, so that sums do not depend on the number of threads.
inline constexpr int64_t kPiece = 1 << 15;

/// The segments of elements [begin, end) of buffer `buffer`.
ShardSegments shard_segments(ParameterStore& store, int buffer, int64_t begin, int64_t end);

}  // namespace troupe::optim
