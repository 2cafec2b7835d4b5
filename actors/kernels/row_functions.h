#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

/// The row-wise kernels without autograd: tensors in, tensors out, for the device that they lie on. CPU: the loops of
/// row_loops.h over the host's threads; GPU: the kernels of row_kernels.h; shapes that these do not take: compositions
/// of ATen operators. Inputs contiguous.
namespace troupe {

struct RmsNormResult {
  at::Tensor sum;      // [N, H]; undefined without residual
  at::Tensor y;        // [N, H]
  at::Tensor inverse;  // [N] fp32
};
/// residual: [N, H] or undefined.
RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps);
/// grad_sum: [N, H] or undefined; weight_gradient is added to, or undefined. Returns grad_x, undefined unless wanted.
at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x);

at::Tensor swiglu_rows(const at::Tensor& gate_up);
at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up);

struct RopeTensors {
  const at::Tensor& packed;  // [N, (h + 2 g) d]
  const at::Tensor &q, &k, &v;
  const at::Tensor &cos, &sin;
};
std::tuple<at::Tensor, at::Tensor, at::Tensor> rope_split_rows(const at::Tensor& qkv, const at::Tensor& cos,
                                                               const at::Tensor& sin, int64_t query_heads,
                                                               int64_t kv_heads);
at::Tensor rope_split_rows_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& cos, const at::Tensor& sin);

/// sums [O] += the sum over the rows of x [N, O].
void add_column_sums(const at::Tensor& x, at::Tensor sums);

/// Of x [n]: the sum of squares and the count of NaN and infinite values, [2] fp64 on x's device. For gradients' norms.
at::Tensor squares_and_non_finite(const at::Tensor& x);

}  // namespace troupe
