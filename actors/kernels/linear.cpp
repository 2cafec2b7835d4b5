#include <torch/csrc/autograd/custom_function.h>

#include "actors/kernels/autograd_inputs.h"
#include "actors/kernels/kernels.h"
#include "actors/kernels/matrix_product.h"
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
    return product_with_transpose(x, w.weight, w.bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    if (!gradients[0].defined()) return {Variable(), Variable(), Variable()};
    const at::Tensor grad_y = gradients[0].contiguous();
    const auto weight_gradient = ctx->saved_data.find("weight_gradient"),
               bias_gradient = ctx->saved_data.find("bias_gradient");
    if (weight_gradient != ctx->saved_data.end()) {
      add_transposed_product(weight_gradient->second.toTensor(), grad_y, ctx->get_saved_variables()[0]);
    }
    if (bias_gradient != ctx->saved_data.end()) add_column_sums(grad_y, bias_gradient->second.toTensor());
    Variable grad_x;
    if (ctx->needs_input_grad(0)) grad_x = product_with_transpose(grad_y, ctx->saved_data["weight"].toTensor().t());
    return {grad_x, Variable(), Variable()};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& weight_gradient, const at::Tensor& bias_gradient) {
  const at::Tensor anchor = weight_anchor(weight_gradient.defined() || bias_gradient.defined());
  return LinearFunction::apply(x, anchor, LinearWeights{weight, bias, weight_gradient, bias_gradient});
}

}  // namespace troupe
