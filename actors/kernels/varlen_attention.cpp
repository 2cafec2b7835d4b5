#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "actors/kernels/attention.h"
#include "actors/kernels/device_copy.h"
#include "actors/kernels/kernels.h"
#include "base/result.h"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Segments {
  const std::vector<int64_t>& cu_seqlens;
  bool causal;
  double scale;
};

class VarlenAttentionFunction : public torch::autograd::Function<VarlenAttentionFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& q, const Variable& k, const Variable& v,
                          const Segments& segments) {
    const AttentionPlan plan{segments.cu_seqlens, segments.causal, segments.scale};
    AttentionResult result;
    if (q.size(0) == 0) {
      result.out = at::empty_like(q);
    } else {
      result = q.is_cpu() ? cpu::attention(q, k, v, plan) : cuda::attention(q, k, v, plan);
    }
    ctx->saved_data["cu_seqlens"] = segments.cu_seqlens;
    ctx->saved_data["causal"] = segments.causal;
    ctx->saved_data["scale"] = segments.scale;
    variable_list saved = {q, k, v, result.out};
    saved.insert(saved.end(), result.saved.begin(), result.saved.end());
    ctx->save_for_backward(std::move(saved));
    return result.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Variable &q = saved[0], &k = saved[1], &v = saved[2];
    if (q.size(0) == 0) return {at::empty_like(q), at::empty_like(k), at::empty_like(v), Variable()};
    const std::vector<int64_t> cu_seqlens = ctx->saved_data["cu_seqlens"].toIntVector();
    const AttentionPlan plan{cu_seqlens, ctx->saved_data["causal"].toBool(), ctx->saved_data["scale"].toDouble()};
    const AttentionResult forward{saved[3], {saved.begin() + 4, saved.end()}};
    const Variable grad_out = gradients[0].contiguous();
    AttentionGradients grads = q.is_cpu() ? cpu::attention_backward(grad_out, q, k, v, forward, plan)
                                          : cuda::attention_backward(grad_out, q, k, v, forward, plan);
    return {grads.q, grads.k, grads.v, Variable()};
  }
};

/// Key/value heads laid out one for each query head, for maps that are no equal shares; the gradient sums them up
/// again.
class HeadsOfQueriesFunction : public torch::autograd::Function<HeadsOfQueriesFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& x, const at::Tensor& map) {
    ctx->saved_data["map"] = map;
    ctx->saved_data["heads"] = x.size(1);
    return at::index_select(x, 1, map);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Variable& g = gradients[0];
    at::Tensor grad = at::zeros({g.size(0), ctx->saved_data["heads"].toInt(), g.size(2)}, g.options());
    grad.index_add_(1, ctx->saved_data["map"].toTensor(), g);
    return {grad, Variable()};
  }
};

/// True when the map gives each key/value head the same number of queries, in order.
bool is_equal_shares(const std::vector<int64_t>& kv_of_query, int64_t kv_heads) {
  const int64_t heads = static_cast<int64_t>(kv_of_query.size());
  if (heads % kv_heads != 0) return false;
  for (int64_t i = 0; i < heads; ++i) {
    if (kv_of_query[static_cast<size_t>(i)] != i / (heads / kv_heads)) return false;
  }
  return true;
}

}  // namespace

at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& cu_seqlens, bool causal, double scale,
                            const std::vector<int64_t>& kv_of_query) {
  TROUPE_CHECK(!cu_seqlens.empty() && cu_seqlens.front() == 0 && cu_seqlens.back() == q.size(0));
  TROUPE_CHECK(k.size(0) == q.size(0) && v.size(0) == q.size(0));
  const Segments segments{cu_seqlens, causal, scale};
  if (kv_of_query.empty() || is_equal_shares(kv_of_query, k.size(1))) {
    TROUPE_CHECK(q.size(1) % k.size(1) == 0);
    return VarlenAttentionFunction::apply(q, k, v, segments);
  }
  TROUPE_CHECK(static_cast<int64_t>(kv_of_query.size()) == q.size(1));
  const at::Tensor map = copy_to_device(at::tensor(kv_of_query, at::TensorOptions(at::kLong)), q.device());
  return VarlenAttentionFunction::apply(q, HeadsOfQueriesFunction::apply(k, map), HeadsOfQueriesFunction::apply(v, map),
                                        segments);
}

}  // namespace troupe
