#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

/// The row-wise kernels without autograd: tensors in, tensors out, for the device that they lie on. CPU: the loops of row_loops.h over
/// the host's threads; elsewhere: compositions of ATen operators. Inputs contiguous.
namespace troupe {

struct RmsNormResult {
  at::Tensor sum;      // [N, H]; undefined without residual
  at::Tensor y;        // [N, H]
  at::Tensor inverse;  // [N] fp32
};
/// residual: [N, H] or undefined.
RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps);
/// grad_sum: [N, H] or undefined; weight_gradient is added to, or undefined. Returns grad_x, undefined unless wanted.
at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& inverse, at::Tensor weight_gradient, bool want_grad_x);

at::Tensor swiglu_rows(const at::Tensor& gate_up);
at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up);

std::tuple<at::Tensor, at::Tensor, at::Tensor> rope_split_rows(const at::Tensor& qkv, const at::Tensor& cos, const at::Tensor& sin,
                                                               int64_t query_heads, int64_t kv_heads);
at::Tensor rope_split_rows_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& cos, const at::Tensor& sin);

/// sums [O] += the sum over the rows of x [N, O].
void add_column_sums(const at::Tensor& x, at::Tensor sums);

}  // namespace troupe
