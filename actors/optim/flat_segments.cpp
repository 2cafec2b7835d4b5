#include "actors/optim/flat_segments.h"

#include <algorithm>

namespace troupe::optim {
namespace {

void append_pieces(std::vector<ElementRange>& out, int64_t begin, int64_t end, bool decay) {
  for (int64_t at = begin; at < end; at += kPiece) out.push_back({at, std::min(at + kPiece, end), decay});
}

/// The elements of the local tensor that this rank owns over tp: the whole, nothing, or rows of dimension 0.
ElementRange owned_elements(const LocalParameter& p) {
  const LocalSlice& s = p.slice;
  if (s.own_begin >= s.own_end) return {};
  if (s.dim == 0) {
    const int64_t rows = s.end - s.begin + s.padding;
    const int64_t row = rows == 0 ? 0 : p.elements / rows;
    return {(s.own_begin - s.begin) * row, (s.own_end - s.begin) * row, false};
  }
  // A cut along another dimension is not contiguous: such slices are disjoint over tp and owned whole.
  TROUPE_CHECK(s.own_begin == s.begin && s.own_end == s.end && s.padding == 0);
  return {0, p.elements, false};
}

}  // namespace

ShardSegments shard_segments(ParameterStore& store, int buffer, int64_t begin, int64_t end) {
  ShardSegments segments;
  for (int index : store.buffers()[static_cast<size_t>(buffer)].parameters) {
    const LocalParameter& p = store.parameters()[static_cast<size_t>(index)];
    const auto clip = [&](int64_t from, int64_t to) {  // elements of the parameter to positions in the shard
      return ElementRange{std::max(p.offset + from, begin) - begin, std::min(p.offset + to, end) - begin, false};
    };
    const ElementRange all = clip(0, p.elements);
    if (all.begin >= all.end) continue;
    segments.parameters.push_back({index, all.begin + begin - p.offset, all.end + begin - p.offset, all.begin});
    append_pieces(segments.update, all.begin, all.end, p.decl.decay);
    const ElementRange owned = owned_elements(p);
    const ElementRange counted = clip(owned.begin, owned.end);
    append_pieces(segments.owned, counted.begin, counted.end, false);
  }
  return segments;
}

}  // namespace troupe::optim
