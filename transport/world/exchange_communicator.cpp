#include "transport/world/exchange_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>

#include <numeric>

namespace troupe {
namespace {

/// Below this an all-reduce gathers whole tensors, one round instead of two: latency counts more than bytes.
constexpr int64_t kOneRoundBytes = 32 * 1024;

int64_t sum_of(const std::vector<int64_t>& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

std::vector<int64_t> even_cut(int64_t n, int parts) {
  std::vector<int64_t> rows;
  for (int i = 0; i < parts; ++i) rows.push_back(cut_begin(n, parts, i + 1) - cut_begin(n, parts, i));
  return rows;
}

/// Reduces parts of one shape in their order into `out`.
void reduce_in_order(at::Tensor& out, const std::vector<at::Tensor>& parts, ExchangeCommunicator::Reduction reduction) {
  const bool sum = reduction == ExchangeCommunicator::Reduction::kSum;
  const bool widen = sum && out.scalar_type() == at::kBFloat16;
  at::Tensor result = parts[0].to(widen ? at::kFloat : out.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (sum) {
      result.add_(parts[i]);
    } else {
      at::maximum_out(result, result, parts[i]);
    }
  }
  out.copy_(result);
}

}  // namespace

ExchangeCommunicator::ExchangeCommunicator(std::string name, int rank, int size, std::unique_ptr<PeerExchange> exchange)
    : name_(std::move(name)), rank_(rank), size_(size), exchange_(std::move(exchange)) {}

void ExchangeCommunicator::require(bool condition, const std::string& what) const {
  if (!condition) throw ErrorException(invalid_argument(name_ + ": " + what));
}

void ExchangeCommunicator::gather(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) {
  require(static_cast<int>(rows.size()) == size_, "one row count a rank is needed");
  require(out.size(0) == sum_of(rows) && in.size(0) == rows[static_cast<size_t>(rank_)],
          "gather: row counts differ from the tensors'");
  require(out.is_contiguous() && in.is_contiguous() && out.scalar_type() == in.scalar_type(),
          "gather: tensors differ in type or are not contiguous");
  std::vector<PeerExchange::Transfer> sends, receives;
  int64_t begin = 0;
  for (int i = 0; i < size_; ++i) {
    const int64_t count = rows[static_cast<size_t>(i)];
    at::Tensor part = out.narrow(0, begin, count);
    begin += count;
    if (i == rank_) {
      if (part.data_ptr() != in.data_ptr()) part.copy_(in);
      continue;
    }
    sends.push_back({i, in});
    receives.push_back({i, part});
  }
  exchange_->exchange(sends, receives);
}

void ExchangeCommunicator::all_gather(at::Tensor& out, const at::Tensor& in) {
  if (in.numel() == 0) return;
  require(out.numel() == in.numel() * size_, "all_gather: out must hold size times in");
  at::Tensor flat = out.view({-1});
  gather(flat, in.view({-1}), std::vector<int64_t>(static_cast<size_t>(size_), in.numel()));
}

void ExchangeCommunicator::all_gather_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) {
  gather(out, in, rows);
}

/// Receives every rank's part for this one, then reduces them in rank order.
void ExchangeCommunicator::reduce_scatter(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows,
                                          Reduction reduction) {
  require(static_cast<int>(rows.size()) == size_, "one row count a rank is needed");
  const int64_t own = rows[static_cast<size_t>(rank_)];
  require(in.size(0) == sum_of(rows) && out.size(0) == own, "reduce_scatter: row counts differ from the tensors'");
  require(out.is_contiguous() && in.is_contiguous() && out.scalar_type() == in.scalar_type(),
          "reduce_scatter: tensors differ in type or are not contiguous");
  std::vector<PeerExchange::Transfer> sends, receives;
  std::vector<at::Tensor> parts(static_cast<size_t>(size_));
  int64_t begin = 0;
  for (int i = 0; i < size_; ++i) {
    const int64_t count = rows[static_cast<size_t>(i)];
    at::Tensor part = in.narrow(0, begin, count);
    begin += count;
    if (i == rank_) {
      parts[static_cast<size_t>(i)] = part;
      continue;
    }
    sends.push_back({i, part});
    parts[static_cast<size_t>(i)] = at::empty(out.sizes(), out.options());
    receives.push_back({i, parts[static_cast<size_t>(i)]});
  }
  exchange_->exchange(sends, receives);
  if (own > 0) reduce_in_order(out, parts, reduction);
}

void ExchangeCommunicator::reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) {
  if (in.numel() == 0) return;
  require(in.numel() == out.numel() * size_, "reduce_scatter_sum: in must hold size times out");
  at::Tensor flat = out.view({-1});
  reduce_scatter(flat, in.view({-1}), std::vector<int64_t>(static_cast<size_t>(size_), out.numel()), Reduction::kSum);
}

void ExchangeCommunicator::reduce_scatter_rows_sum(at::Tensor& out, const at::Tensor& in,
                                                   const std::vector<int64_t>& rows) {
  reduce_scatter(out, in, rows, Reduction::kSum);
}

void ExchangeCommunicator::all_reduce(at::Tensor& tensor, Reduction reduction) {
  if (tensor.numel() == 0) return;
  require(tensor.is_contiguous(), "all_reduce: the tensor is not contiguous");
  at::Tensor flat = tensor.view({-1});
  if (static_cast<int64_t>(tensor.nbytes()) <= kOneRoundBytes) {
    at::Tensor copies = at::empty({size_ * flat.numel()}, flat.options());
    gather(copies, flat, std::vector<int64_t>(static_cast<size_t>(size_), flat.numel()));
    reduce_in_order(flat, copies.split(flat.numel()), reduction);
    return;
  }
  const std::vector<int64_t> rows = even_cut(flat.numel(), size_);
  at::Tensor own = flat.narrow(0, cut_begin(flat.numel(), size_, rank_), rows[static_cast<size_t>(rank_)]);
  reduce_scatter(own, flat, rows, reduction);
  gather(flat, own, rows);
}

void ExchangeCommunicator::all_reduce_sum(at::Tensor& tensor) { all_reduce(tensor, Reduction::kSum); }
void ExchangeCommunicator::all_reduce_max(at::Tensor& tensor) { all_reduce(tensor, Reduction::kMax); }

void ExchangeCommunicator::all_to_all_rows(at::Tensor& out, const at::Tensor& in,
                                           const std::vector<int64_t>& receive_rows,
                                           const std::vector<int64_t>& send_rows) {
  require(static_cast<int>(receive_rows.size()) == size_ && static_cast<int>(send_rows.size()) == size_,
          "one row count a rank is needed");
  require(out.size(0) == sum_of(receive_rows) && in.size(0) == sum_of(send_rows),
          "all_to_all_rows: row counts differ from the tensors'");
  require(out.is_contiguous() && in.is_contiguous() && out.scalar_type() == in.scalar_type(),
          "all_to_all_rows: tensors differ in type or are not contiguous");
  std::vector<PeerExchange::Transfer> sends, receives;
  int64_t in_begin = 0, out_begin = 0;
  for (int i = 0; i < size_; ++i) {
    const auto at = static_cast<size_t>(i);
    at::Tensor source = in.narrow(0, in_begin, send_rows[at]);
    at::Tensor target = out.narrow(0, out_begin, receive_rows[at]);
    in_begin += send_rows[at];
    out_begin += receive_rows[at];
    if (i == rank_) {
      target.copy_(source);
    } else {
      sends.push_back({i, source});
      receives.push_back({i, target});
    }
  }
  exchange_->exchange(sends, receives);
}

void ExchangeCommunicator::broadcast(at::Tensor& tensor, int root) {
  require(root >= 0 && root < size_,
          "broadcast: root " + std::to_string(root) + " of " + std::to_string(size_) + " ranks");
  require(tensor.is_contiguous(), "broadcast: the tensor is not contiguous");
  std::vector<PeerExchange::Transfer> sends, receives;
  if (rank_ != root) receives.push_back({root, tensor});
  for (int i = 0; i < size_ && rank_ == root; ++i) {
    if (i != root) sends.push_back({i, tensor});
  }
  exchange_->exchange(sends, receives);
}

}  // namespace troupe
