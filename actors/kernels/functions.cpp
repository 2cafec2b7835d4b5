#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "actors/kernels/autograd_inputs.h"
#include "actors/kernels/kernels.h"
#include "actors/kernels/row_functions.h"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct NormWeights {
  const at::Tensor& weight;
  const at::Tensor& weight_gradient;
  double eps;
};

/// What both norms' backward passes share: the norm's part of the gradient, plus `grad_sum` when defined.
Variable norm_backward(AutogradContext* ctx, const Variable& grad_y, const Variable& grad_sum) {
  const variable_list saved = ctx->get_saved_variables();
  const auto weight_gradient = ctx->saved_data.find("weight_gradient");
  return rms_norm_rows_backward(
      grad_y.contiguous(), grad_sum.defined() ? grad_sum.contiguous() : grad_sum, saved[0],
      ctx->saved_data["weight"].toTensor(), saved[1],
      weight_gradient == ctx->saved_data.end() ? at::Tensor() : weight_gradient->second.toTensor(),
      ctx->needs_input_grad(0));
}

void save_norm(AutogradContext* ctx, const NormWeights& w) {
  ctx->set_materialize_grads(false);
  ctx->saved_data["weight"] = w.weight;
  if (w.weight_gradient.defined()) ctx->saved_data["weight_gradient"] = w.weight_gradient;
}

class RmsNormFunction : public Function<RmsNormFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& /*anchor*/, const NormWeights& w) {
    RmsNormResult r = rms_norm_rows(x, {}, w.weight, w.eps);
    save_norm(ctx, w);
    ctx->save_for_backward({x, r.inverse});
    return r.y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    if (!gradients[0].defined()) return {Variable(), Variable(), Variable()};
    return {norm_backward(ctx, gradients[0], {}), Variable(), Variable()};
  }
};

class AddRmsNormFunction : public Function<AddRmsNormFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const Variable& x, const Variable& residual,
                               const Variable& /*anchor*/, const NormWeights& w) {
    RmsNormResult r = rms_norm_rows(x, residual, w.weight, w.eps);
    save_norm(ctx, w);
    ctx->save_for_backward({r.sum, r.inverse});
    return {r.sum, r.y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    // x and the residual enter as their sum, so both get the same gradient.
    Variable grad = gradients[0];
    if (gradients[1].defined()) {
      const Variable through_norm = norm_backward(ctx, gradients[1], gradients[0]);
      if (through_norm.defined()) grad = through_norm;
    }
    return {grad, grad, Variable(), Variable()};
  }
};

class SwigluFunction : public Function<SwigluFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& gate_up) {
    ctx->save_for_backward({gate_up});
    return swiglu_rows(gate_up);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {swiglu_rows_backward(gradients[0].contiguous(), ctx->get_saved_variables()[0])};
  }
};

class GeluFunction : public Function<GeluFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& x) {
    ctx->save_for_backward({x});
    return at::gelu(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {at::gelu_backward(gradients[0], ctx->get_saved_variables()[0])};
  }
};

struct RopeTables {
  const at::Tensor& cos;
  const at::Tensor& sin;
  int64_t query_heads, kv_heads;
};

class RopeSplitFunction : public Function<RopeSplitFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const Variable& qkv, const RopeTables& t) {
    ctx->saved_data["cos"] = t.cos;
    ctx->saved_data["sin"] = t.sin;
    auto [q, k, v] = rope_split_rows(qkv.contiguous(), t.cos, t.sin, t.query_heads, t.kv_heads);
    return {q, k, v};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {rope_split_rows_backward(gradients[0].contiguous(), gradients[1].contiguous(), gradients[2].contiguous(),
                                     ctx->saved_data["cos"].toTensor(), ctx->saved_data["sin"].toTensor()),
            Variable()};
  }
};

class TakeRowsFunction : public Function<TakeRowsFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& rows, const at::Tensor& index) {
    ctx->saved_data["index"] = index;
    ctx->saved_data["rows"] = rows.size(0);
    return at::index_select(rows, 0, index);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const at::Tensor index = ctx->saved_data["index"].toTensor();
    std::vector<int64_t> shape = gradients[0].sizes().vec();
    shape[0] = ctx->saved_data["rows"].toInt();
    at::Tensor grad =
        index.size(0) == shape[0] ? at::empty(shape, gradients[0].options()) : at::zeros(shape, gradients[0].options());
    grad.index_copy_(0, index, gradients[0]);
    return {grad, Variable()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_gradient, double eps) {
  return RmsNormFunction::apply(x, weight_anchor(weight_gradient.defined()), NormWeights{weight, weight_gradient, eps});
}

NormedSum add_rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& weight_gradient, double eps) {
  const variable_list out = AddRmsNormFunction::apply(x, residual, weight_anchor(weight_gradient.defined()),
                                                      NormWeights{weight, weight_gradient, eps});
  return {out[0], out[1]};
}

at::Tensor swiglu(const at::Tensor& gate_up) { return SwigluFunction::apply(gate_up); }

at::Tensor gelu(const at::Tensor& x) { return GeluFunction::apply(x); }

std::tuple<at::Tensor, at::Tensor, at::Tensor> rope_split(const at::Tensor& qkv, const at::Tensor& cos,
                                                          const at::Tensor& sin, int64_t query_heads,
                                                          int64_t kv_heads) {
  const variable_list out = RopeSplitFunction::apply(qkv, RopeTables{cos, sin, query_heads, kv_heads});
  return {out[0], out[1], out[2]};
}

at::Tensor take_rows(const at::Tensor& rows, const at::Tensor& index) { return TakeRowsFunction::apply(rows, index); }

}  // namespace troupe
