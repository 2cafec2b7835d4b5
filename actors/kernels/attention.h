#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

/// Variable-length attention without autograd, one implementation a device. Shapes as in kernels.h; queries and keys
/// have equal head counts or h % g == 0 with equal shares in order.
namespace troupe {

struct AttentionPlan {
  const std::vector<int64_t>& cu_seqlens;
  bool causal;
  double scale;
};

struct AttentionResult {
  at::Tensor out;                 // [N, h, d]
  std::vector<at::Tensor> saved;  // log-sum-exps and whatever else the backward pass of this device wants
};

struct AttentionGradients {
  at::Tensor q, k, v;
};

namespace cpu {
AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPlan& plan);
AttentionGradients attention_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionResult& forward, const AttentionPlan& plan);
}  // namespace cpu

namespace cuda {
AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPlan& plan);
AttentionGradients attention_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionResult& forward, const AttentionPlan& plan);
}  // namespace cuda

}  // namespace troupe
