#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include "actors/kernels/attention.h"
#include "base/result.h"

namespace troupe::cpu {
namespace {

/// Adjacent segments of one length, attended to as one batch.
struct Run {
  int64_t first_row, segments, length;
};

std::vector<Run> runs_of(const std::vector<int64_t>& cu_seqlens) {
  std::vector<Run> runs;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t length = cu_seqlens[i + 1] - cu_seqlens[i];
    if (length == 0) continue;
    if (!runs.empty() && runs.back().length == length) {
      ++runs.back().segments;
    } else {
      runs.push_back({cu_seqlens[i], 1, length});
    }
  }
  return runs;
}

/// Rows of a run as [segments, h, length, d]: a view.
at::Tensor batch(const at::Tensor& x, const Run& run) {
  return x.narrow(0, run.first_row, run.segments * run.length)
      .view({run.segments, run.length, x.size(1), x.size(2)})
      .transpose(1, 2);
}

/// [N, g, d] -> [N, h, d], each head repeated for its queries; the same tensor when there is nothing to repeat.
at::Tensor repeated(const at::Tensor& x, int64_t heads) {
  const int64_t kv = x.size(1), d = x.size(2);
  if (kv == heads) return x;
  return x.unsqueeze(2).expand({x.size(0), kv, heads / kv, d}).reshape({x.size(0), heads, d});
}

/// The transpose of `repeated`.
at::Tensor summed(const at::Tensor& x, int64_t kv) {
  if (x.size(1) == kv) return x;
  return at::sum(x.view({x.size(0), kv, x.size(1) / kv, x.size(2)}), 2);
}

bool is_whole(const std::vector<Run>& runs, const at::Tensor& x) {
  return runs.size() == 1 && runs[0].segments * runs[0].length == x.size(0);
}

/// A kernel result [segments, h, length, d] back as rows.
at::Tensor as_rows(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0) * x.size(2), x.size(1), x.size(3)});
}

}  // namespace

AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPlan& plan) {
  const std::vector<Run> runs = runs_of(plan.cu_seqlens);
  const at::Tensor keys = repeated(k, q.size(1)), values = repeated(v, q.size(1));
  AttentionResult result;
  if (!is_whole(runs, q)) result.out = at::empty(q.sizes(), q.options());
  for (const Run& run : runs) {
    auto [out, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(
        batch(q, run), batch(keys, run), batch(values, run), 0.0, plan.causal, {}, plan.scale);
    result.saved.push_back(log_sum_exp);
    if (result.out.defined()) {
      batch(result.out, run).copy_(out);
    } else {
      result.out = as_rows(out);
    }
  }
  return result;
}

AttentionGradients attention_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const AttentionResult& forward, const AttentionPlan& plan) {
  const std::vector<Run> runs = runs_of(plan.cu_seqlens);
  const at::Tensor keys = repeated(k, q.size(1)), values = repeated(v, q.size(1));
  AttentionGradients grads;
  const bool whole = is_whole(runs, q);
  if (!whole)
    grads = {at::empty(q.sizes(), q.options()), at::empty(q.sizes(), q.options()), at::empty(q.sizes(), q.options())};
  for (size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    auto [gq, gk, gv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        batch(grad_out, run), batch(q, run), batch(keys, run), batch(values, run), batch(forward.out, run),
        forward.saved[i], 0.0, plan.causal, {}, plan.scale);
    if (whole) {
      grads = {as_rows(gq), as_rows(gk), as_rows(gv)};
    } else {
      batch(grads.q, run).copy_(gq);
      batch(grads.k, run).copy_(gk);
      batch(grads.v, run).copy_(gv);
    }
  }
  return {grads.q, summed(grads.k, k.size(1)), summed(grads.v, v.size(1))};
}

}  // namespace troupe::cpu
