#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

/// Layouts of a packed row tensor [T, H] over the ranks of a group, and the plan that moves rows from one layout to
/// another. A row is named by its global id (its position in the step's reading order). Pure arithmetic; every rank
/// derives the same plan.
namespace troupe {

/// One rank's rows, in the order in which they lie in its local buffer: local row i holds global row rows[i].
struct RankRows {
  std::vector<int64_t> rows;
};

/// Rows of one tensor over a group's ranks. In a valid layout no id occurs twice: each row has exactly one holder, who
/// is also the one owner of its gradient. (A consumer that replicates rows over tp is described by its stripes; it
/// all-gathers in its own world.)
struct RowLayout {
  int chunk = 0;  // which consumer chunk the tensor enters
  std::vector<RankRows> ranks;
  int64_t total_rows() const;
};

/// Rows that one producer rank sends to one consumer rank: local row `source[i]` of the producer becomes local row
/// `target[i]` of the consumer. Ascending in `target`. The backward piece is the same with the roles exchanged.
struct ReshardPiece {
  int producer = 0, consumer = 0;
  std::vector<int64_t> source, target;
};

struct ReshardPlan {
  std::vector<ReshardPiece> pieces;  // ordered by (producer, consumer), none empty
  std::vector<const ReshardPiece*> of_producer(int rank) const;
  std::vector<const ReshardPiece*> of_consumer(int rank) const;
};

/// Plans the transfer of every row that both layouts hold. InvalidArgument when a row occurs twice in one layout,
/// naming row and ranks. Cost: O(T log T).
Result<ReshardPlan> plan_reshard(const RowLayout& producer, const RowLayout& consumer);

/// The piece as the gradient travels: from the consumer's rows back to the producer's. Ascending in its own `target`,
/// the producer's rows.
ReshardPiece reversed(const ReshardPiece& piece);

/// How a consumer that holds all of `rows` on each of its `tp` ranks takes them over the wire: rank i gets the i-th
/// contiguous stripe (cut_begin) and gathers the others inside its own world. Sizes differ by at most one; a stripe may
/// be empty.
RowLayout stripe_layout(const std::vector<int64_t>& rows, int tp);

}  // namespace troupe
