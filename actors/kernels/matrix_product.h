#pragma once

#include <ATen/core/Tensor.h>

/// Matrix products without autograd, each by the library that is fastest for its form on the device at hand.
namespace troupe {

/// x [N, I], weight [O, I] of any strides, bias [O] or undefined -> x weight^T + bias, [N, O] in the dtype of x.
/// On CPUs oneDNN does it in fp32: its kernels use AVX-512 whoever made the processor, which is worth a fifth of the
/// time here.
at::Tensor product_with_transpose(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// gradient [O, I] += grad_y^T x for grad_y [N, O], x [N, I]; the sum is taken and added in the gradient's dtype.
void add_transposed_product(at::Tensor gradient, const at::Tensor& grad_y, const at::Tensor& x);

}  // namespace troupe
