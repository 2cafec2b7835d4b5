#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "transport/world/world.h"

/// How rows move in and out of the tensor-parallel regions of the text decoder.
/// Source: Megatron-LM (arXiv:1909.08053), section 3, and tensor-sequence parallelism (arXiv:2205.05198),
/// section 4.2.2.
namespace troupe {

/// A weight and the view of the flat gradient buffer that its gradient is added to (undefined: frozen).
struct TrainedView {
  at::Tensor weight, gradient;
};

/// The rows of one activation [N, H] over the tp ranks, between two parallel regions: all on every rank (plain tensor
/// parallelism), or rank r holds its own `rows[r]` of them, in order (tensor-sequence parallelism). `enter` and `leave`
/// are each other's mirror: the backward of one is the other. With one rank both return their argument. Owner thread
/// only; the communicator outlives it.
class RowSharding {
 public:
  /// Every rank holds all `total` rows.
  static RowSharding replicated(Communicator& tp, int64_t total);
  /// Rank r holds rows[r] rows (zero is legal); the same list on every rank.
  static RowSharding sharded(Communicator& tp, std::vector<int64_t> rows);

  bool is_sharded() const { return sharded_; }
  int64_t total_rows() const { return total_; }
  int64_t local_rows() const { return sharded_ ? rows_[static_cast<size_t>(tp_->rank())] : total_; }
  /// First of this rank's rows among all.
  int64_t first_row() const;

  /// [local, ...] -> all rows [total, ...] on every rank, ahead of a column-parallel product. Differentiable. Forward:
  /// an all-gather when sharded, else nothing; backward: `leave`.
  at::Tensor enter(const at::Tensor& local) const;
  /// This rank's summand [total, ...] of a row-parallel product -> the sum of this rank's rows [local, ...].
  /// Differentiable. Forward: a reduce-scatter when sharded, else an all-reduce in place; backward: `enter`.
  at::Tensor leave(const at::Tensor& partial) const;

  /// The same without a graph.
  at::Tensor gather(const at::Tensor& local) const;
  at::Tensor reduce(const at::Tensor& partial) const;

 private:
  RowSharding(Communicator& tp, bool sharded, int64_t total, std::vector<int64_t> rows);
  bool even() const;

  Communicator* tp_;
  bool sharded_;
  int64_t total_;
  std::vector<int64_t> rows_;  // of each rank; empty when replicated
};

/// A column-parallel product behind its `enter`: local rows [local, I], weight [O, I], bias [O] or undefined -> [total,
/// O]. With sharded rows only the local ones are kept for the backward pass, which gathers them again for the weight's
/// gradient.
at::Tensor column_linear(const RowSharding& rows, const at::Tensor& local, const TrainedView& weight,
                         const TrainedView& bias = {});
/// A row-parallel product with its `leave`: [total, I] -> [local, O].
at::Tensor row_linear(const RowSharding& rows, const at::Tensor& x, const TrainedView& weight);

}  // namespace troupe
