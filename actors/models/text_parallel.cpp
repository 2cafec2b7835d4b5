#include "actors/models/text_parallel.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <numeric>
#include <utility>

#include "actors/kernels/autograd_inputs.h"
#include "actors/kernels/kernels.h"
#include "actors/kernels/matrix_product.h"
#include "actors/kernels/row_functions.h"
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

/// linear(enter(x)) that keeps this rank's rows instead of all of them.
struct GatheredLinearFunction : torch::autograd::Function<GatheredLinearFunction> {
  static Variable forward(AutogradContext* context, const Variable& local, const Variable& /*anchor*/,
                          const RowSharding* sharding, const TrainedView* weight, const TrainedView* bias) {
    context->saved_data["sharding"] = c10::IValue::make_capsule(c10::make_intrusive<ShardingHolder>(*sharding));
    context->saved_data["weight"] = weight->weight;
    if (weight->gradient.defined()) {
      context->saved_data["weight_gradient"] = weight->gradient;
      context->save_for_backward({local});
    }
    if (bias->gradient.defined()) context->saved_data["bias_gradient"] = bias->gradient;
    return product_with_transpose(sharding->gather(local), weight->weight, bias->weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto capsule = context->saved_data["sharding"].toCapsule();
    const RowSharding& sharding = static_cast<ShardingHolder&>(*capsule).sharding;
    const at::Tensor gradient = gradients[0].contiguous();
    auto& saved = context->saved_data;
    if (const auto found = saved.find("weight_gradient"); found != saved.end())
      add_transposed_product(found->second.toTensor(), gradient, sharding.gather(context->get_saved_variables()[0]));
    if (const auto found = saved.find("bias_gradient"); found != saved.end())
      add_column_sums(gradient, found->second.toTensor());
    const at::Tensor partial = product_with_transpose(gradient, saved["weight"].toTensor().t());
    return {sharding.reduce(partial), Variable(), Variable(), Variable(), Variable()};
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

at::Tensor RowSharding::enter(const at::Tensor& local) const {
  return tp_->size() == 1 ? local : EnterFunction::apply(local, this);
}

at::Tensor RowSharding::leave(const at::Tensor& partial) const {
  return tp_->size() == 1 ? partial : LeaveFunction::apply(partial, this);
}

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

at::Tensor column_linear(const RowSharding& rows, const at::Tensor& local, const TrainedView& weight,
                         const TrainedView& bias) {
  if (!rows.is_sharded()) return linear(rows.enter(local), weight.weight, bias.weight, weight.gradient, bias.gradient);
  const at::Tensor anchor = weight_anchor(weight.gradient.defined() || bias.gradient.defined());
  return GatheredLinearFunction::apply(local, anchor, &rows, &weight, &bias);
}

at::Tensor row_linear(const RowSharding& rows, const at::Tensor& x, const TrainedView& weight) {
  return rows.leave(linear(x, weight.weight, {}, weight.gradient, {}));
}

}  // namespace troupe
