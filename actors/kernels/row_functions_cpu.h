#pragma once

#include "actors/kernels/row_functions.h"

/// row_functions.h on CPUs: the loops of row_loops.h over the host's threads. fp32 and bf16, contiguous.
namespace troupe::cpu {

RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps);
at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x);
at::Tensor swiglu_rows(const at::Tensor& gate_up);
at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up);
void add_column_sums(const at::Tensor& x, at::Tensor sums);

/// Fills q, k, v from packed, or (`inverse`) packed from the gradients in q, k, v.
void rope_split_rows(const RopeTensors& tensors, bool inverse);

}  // namespace troupe::cpu
