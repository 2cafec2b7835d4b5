#include "actors/kernels/matrix_product.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <optional>
#include <string_view>

namespace troupe {
namespace {

/// oneDNN generates code for every new shape, which takes milliseconds and memory, and row counts change from unit to
/// unit: below this many multiply-adds (some milliseconds of work) it costs more than its faster product saves.
constexpr int64_t kSmallProduct = 1 << 28;

using OneDnnLinear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                std::string_view, at::List<std::optional<at::Scalar>>, std::optional<std::string_view>);

/// The operator, when this LibTorch has it.
const std::optional<c10::TypedOperatorHandle<OneDnnLinear>>& one_dnn_linear() {
  static const std::optional<c10::TypedOperatorHandle<OneDnnLinear>> found = [] {
    const auto handle = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    return handle ? std::optional(handle->typed<OneDnnLinear>()) : std::nullopt;
  }();
  return found;
}

}  // namespace

at::Tensor product_with_transpose(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool large = x.size(0) * x.size(1) * weight.size(0) >= kSmallProduct;
  if (x.is_cpu() && x.scalar_type() == at::kFloat && large && one_dnn_linear()) {
    return one_dnn_linear()->call(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, "none",
                                  at::List<std::optional<at::Scalar>>(), "");
  }
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

void add_transposed_product(at::Tensor gradient, const at::Tensor& grad_y, const at::Tensor& x) {
  if (gradient.scalar_type() == x.scalar_type()) {
    gradient.addmm_(grad_y.t(), x);
  } else if (x.is_cuda()) {
    // The tensor cores sum in fp32 anyway; this keeps their sum instead of rounding it to bf16 before the addition.
    at::addmm_out(gradient, gradient, grad_y.t(), x, gradient.scalar_type());
  } else {
    gradient.addmm_(grad_y.to(gradient.scalar_type()).t(), x.to(gradient.scalar_type()));
  }
}

}  // namespace troupe
