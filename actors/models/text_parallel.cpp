#include "actors/models/text_parallel.h"

#include <torch/csrc/autograd/custom_function.h>

#include <ATen/ops/empty.h>

#include <memory>
#include <numeric>
#include <utility>

#include "base/result.h"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// The sharding travels to the backward pass by value.
struct ShardingHolder : torch::CustomClassHolder {
  explicit ShardingHolder(RowSharding s) : sharding(std::move(s)) {}
  RowSharding sharding;
};

at::Tensor like_with_rows(const at::Tensor& tensor, int64_t rows) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, tensor.options());
}

struct EnterFunction : torch::autograd::Function<EnterFunction> {
  static Variable forward(AutogradContext* context, const Variable& local, const RowSharding* sharding) {
    context->saved_data["sharding"] = c10::IValue::make_capsule(c10::make_intrusive<ShardingHolder>(*sharding));
    return sharding->gather(local);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto capsule = context->saved_data["sharding"].toCapsule();
    return {static_cast<ShardingHolder&>(*capsule).sharding.reduce(gradients[0]), Variable()};
  }
};

struct LeaveFunction : torch::autograd::Function<LeaveFunction> {
  static Variable forward(AutogradContext* context, const Variable& partial, const RowSharding* sharding) {
    context->saved_data["sharding"] = c10::IValue::make_capsule(c10::make_intrusive<ShardingHolder>(*sharding));
    if (!sharding->is_sharded()) context->mark_dirty({partial});
    return sharding->reduce(partial);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto capsule = context->saved_data["sharding"].toCapsule();
    return {static_cast<ShardingHolder&>(*capsule).sharding.gather(gradients[0]), Variable()};
  }
};

}  // namespace

RowSharding::RowSharding(Communicator& tp, bool sharded, int64_t total, std::vector<int64_t> rows)
    : tp_(&tp), sharded_(sharded), total_(total), rows_(std::move(rows)) {}

RowSharding RowSharding::replicated(Communicator& tp, int64_t total) { return {tp, false, total, {}}; }

RowSharding RowSharding::sharded(Communicator& tp, std::vector<int64_t> rows) {
  TROUPE_CHECK(rows.size() == static_cast<size_t>(tp.size()));
  const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  return {tp, true, total, std::move(rows)};
}

int64_t RowSharding::first_row() const {
  return sharded_ ? std::accumulate(rows_.begin(), rows_.begin() + tp_->rank(), int64_t{0}) : 0;
}

bool RowSharding::even() const {
  for (const int64_t n : rows_)
    if (n != rows_.front()) return false;
  return true;
}

at::Tensor RowSharding::enter(const at::Tensor& local) const { return tp_->size() == 1 ? local : EnterFunction::apply(local, this); }

at::Tensor RowSharding::leave(const at::Tensor& partial) const { return tp_->size() == 1 ? partial : LeaveFunction::apply(partial, this); }

at::Tensor RowSharding::gather(const at::Tensor& local) const {
  TROUPE_CHECK(local.size(0) == local_rows());
  if (!sharded_ || tp_->size() == 1 || total_ == 0) return local;
  at::Tensor all = like_with_rows(local, total_);
  if (even()) {
    tp_->all_gather(all, local.contiguous());
  } else {
    tp_->all_gather_rows(all, local.contiguous(), rows_);
  }
  return all;
}

at::Tensor RowSharding::reduce(const at::Tensor& partial) const {
  TROUPE_CHECK(partial.size(0) == total_);
  if (tp_->size() == 1 || total_ == 0) return partial;
  if (!sharded_) {
    at::Tensor sum = partial.contiguous();
    tp_->all_reduce_sum(sum);
    return sum;
  }
  at::Tensor mine = like_with_rows(partial, local_rows());
  if (even()) {
    tp_->reduce_scatter_sum(mine, partial.contiguous());
  } else {
    tp_->reduce_scatter_rows_sum(mine, partial.contiguous(), rows_);
  }
  return mine;
}

}  // namespace troupe
