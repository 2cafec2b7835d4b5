#pragma once

#include "actors/kernels/row_functions.h"

/// row_functions.h on GPUs: the kernels of row_kernels.h on the current stream. fp32 and bf16, contiguous. A build
/// without CUDA has none of them: every `takes` is false there, and shapes that a kernel does not take go through
/// compositions of ATen operators instead.
namespace troupe::cuda {

bool takes_norm(const at::Tensor& x);
bool takes_swiglu(const at::Tensor& gate_up);
bool takes_rope(const at::Tensor& rows, int64_t head_dim);
bool takes_squares(const at::Tensor& x);

RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps);
at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x);
at::Tensor swiglu_rows(const at::Tensor& gate_up);
at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up);
/// Fills q, k, v from packed, or (`inverse`) packed from the gradients in q, k, v.
void rope_split_rows(const RopeTensors& tensors, bool inverse);
/// Sum of squares and count of non-finite values of x [n]: [2] fp64 on the device.
at::Tensor squares(const at::Tensor& x);

}  // namespace troupe::cuda
