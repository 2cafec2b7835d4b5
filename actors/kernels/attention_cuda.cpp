#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "actors/kernels/attention.h"
#include "actors/kernels/device_copy.h"

namespace troupe::cuda {
namespace {

/// Segment bounds as the kernels want them: int32 on the device.
at::Tensor device_bounds(const std::vector<int64_t>& cu_seqlens, const at::Tensor& like) {
  at::Tensor bounds = at::empty({static_cast<int64_t>(cu_seqlens.size())}, at::kInt);
  std::transform(cu_seqlens.begin(), cu_seqlens.end(), bounds.data_ptr<int32_t>(),
                 [](int64_t x) { return static_cast<int32_t>(x); });
  return copy_to_device(bounds, like.device());
}

int64_t longest(const std::vector<int64_t>& cu_seqlens) {
  int64_t most = 0;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) most = std::max(most, cu_seqlens[i + 1] - cu_seqlens[i]);
  return most;
}

/// The flash kernels have no fp32 form; the memory-efficient ones do, for equal head counts.
bool has_flash_kernel(const at::Tensor& q) { return q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf; }

at::Tensor repeated(const at::Tensor& x, int64_t heads) {
  const int64_t kv = x.size(1), d = x.size(2);
  if (kv == heads) return x;
  return x.unsqueeze(2).expand({x.size(0), kv, heads / kv, d}).reshape({x.size(0), heads, d});
}

at::Tensor summed(const at::Tensor& x, int64_t kv) {
  if (x.size(1) == kv) return x;
  return at::sum(x.view({x.size(0), kv, x.size(1) / kv, x.size(2)}), 2);
}

/// The mask numbers of the memory-efficient kernels.
int64_t mask_type(bool causal) { return causal ? 1 : 0; }

}  // namespace

AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPlan& plan) {
  const at::Tensor bounds = device_bounds(plan.cu_seqlens, q);
  const int64_t most = longest(plan.cu_seqlens);
  if (has_flash_kernel(q)) {
    auto [out, log_sum_exp, rng_state, unused, debug] =
        at::_flash_attention_forward(q, k, v, bounds, bounds, most, most, 0.0, plan.causal, false, plan.scale);
    return {out, {log_sum_exp, bounds, rng_state, unused}};
  }
  auto [out, log_sum_exp, seed, offset, max_q, max_k] = at::_efficient_attention_forward(
      q.unsqueeze(0), repeated(k, q.size(1)).unsqueeze(0), repeated(v, q.size(1)).unsqueeze(0), {}, bounds, bounds,
      most, most, 0.0, mask_type(plan.causal), true, plan.scale);
  return {out.squeeze(0), {log_sum_exp, bounds, seed, offset}};
}

AttentionGradients attention_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionResult& forward, const AttentionPlan& plan) {
  const int64_t most = longest(plan.cu_seqlens);
  const std::vector<at::Tensor>& saved = forward.saved;
  if (has_flash_kernel(q)) {
    auto [gq, gk, gv] = at::_flash_attention_backward(grad_out, q, k, v, forward.out, saved[0], saved[1], saved[1],
                                                      most, most, 0.0, plan.causal, saved[2], saved[3], plan.scale);
    return {gq, gk, gv};
  }
  auto [gq, gk, gv, bias] = at::_efficient_attention_backward(
      grad_out.unsqueeze(0), q.unsqueeze(0), repeated(k, q.size(1)).unsqueeze(0), repeated(v, q.size(1)).unsqueeze(0),
      {}, forward.out.unsqueeze(0), saved[1], saved[1], most, most, saved[0], 0.0, saved[2], saved[3],
      mask_type(plan.causal), false, plan.scale);
  return {gq.squeeze(0), summed(gk.squeeze(0), k.size(1)), summed(gv.squeeze(0), v.size(1))};
}

}  // namespace troupe::cuda
