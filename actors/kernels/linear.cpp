#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>

#include "actors/kernels/autograd_inputs.h"
#include "actors/kernels/kernels.h"
#include "actors/kernels/row_functions.h"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct LinearWeights {
  const at::Tensor& weight;
  const at::Tensor& bias;
  const at::Tensor& weight_gradient;
  const at::Tensor& bias_gradient;
};

/// gradient [O, I] += grad_y^T x, in the gradient's dtype.
void add_weight_gradient(at::Tensor gradient, const at::Tensor& grad_y, const at::Tensor& x) {
  if (gradient.scalar_type() == x.scalar_type()) {
    gradient.addmm_(grad_y.t(), x);
  } else if (x.is_cuda()) {
    // The tensor cores sum in fp32 anyway; this keeps their sum instead of rounding it to bf16 before the addition.
    at::addmm_out(gradient, gradient, grad_y.t(), x, gradient.scalar_type());
  } else {
    gradient.addmm_(grad_y.to(gradient.scalar_type()).t(), x.to(gradient.scalar_type()));
  }
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& x, const Variable& /*anchor*/, const LinearWeights& w) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["weight"] = w.weight;
    if (w.weight_gradient.defined()) {
      ctx->saved_data["weight_gradient"] = w.weight_gradient;
      ctx->save_for_backward({x});
    }
    if (w.bias_gradient.defined()) ctx->saved_data["bias_gradient"] = w.bias_gradient;
    return w.bias.defined() ? at::addmm(w.bias, x, w.weight.t()) : at::mm(x, w.weight.t());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    if (!gradients[0].defined()) return {Variable(), Variable(), Variable()};
    const at::Tensor grad_y = gradients[0].contiguous();
    const auto weight_gradient = ctx->saved_data.find("weight_gradient"), bias_gradient = ctx->saved_data.find("bias_gradient");
    if (weight_gradient != ctx->saved_data.end()) {
      add_weight_gradient(weight_gradient->second.toTensor(), grad_y, ctx->get_saved_variables()[0]);
    }
    if (bias_gradient != ctx->saved_data.end()) add_column_sums(grad_y, bias_gradient->second.toTensor());
    Variable grad_x;
    if (ctx->needs_input_grad(0)) grad_x = at::mm(grad_y, ctx->saved_data["weight"].toTensor());
    return {grad_x, Variable(), Variable()};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& weight_gradient,
                  const at::Tensor& bias_gradient) {
  const at::Tensor anchor = weight_anchor(weight_gradient.defined() || bias_gradient.defined());
  return LinearFunction::apply(x, anchor, LinearWeights{weight, bias, weight_gradient, bias_gradient});
}

}  // namespace troupe
