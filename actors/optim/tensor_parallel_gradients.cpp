#include "actors/optim/tensor_parallel_gradients.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

namespace troupe::optim {
namespace {

bool shares_kv_heads(const ParameterStore& store, const ParameterDecl& decl) {
  const int tp = store.options().tp;
  int64_t rows = 0;
  for (int rank = 0; rank < tp; ++rank) {
    const LocalSlice slice = local_slice(decl, store.config(), tp, rank);
    rows += slice.end - slice.begin;
  }
  return rows != decl.shape[0];
}

void sum_batch(const std::vector<TensorParallelSum>& sums, size_t first, size_t last, int64_t elements,
               Communicator& tp) {
  at::Tensor buffer = at::zeros({elements}, sums[first].gradient.options());
  int64_t at = 0;
  const auto own = [&](const TensorParallelSum& s) {
    return buffer.narrow(0, at + s.own_begin, s.gradient.numel()).view_as(s.gradient);
  };
  for (size_t i = first; i < last; at += sums[i++].elements) own(sums[i]).copy_(sums[i].gradient);
  tp.all_reduce_sum(buffer);
  at = 0;
  for (size_t i = first; i < last; at += sums[i++].elements) sums[i].gradient.copy_(own(sums[i]));
}

}  // namespace

std::vector<TensorParallelSum> tensor_parallel_sums(ParameterStore& store, int first, int last) {
  std::vector<TensorParallelSum> sums;
  if (store.options().tp == 1) return sums;
  for (int i = first; i < last; ++i) {
    const LocalParameter& p = store.parameters()[static_cast<size_t>(i)];
    if (!p.trained) continue;
    if (p.decl.tp_layout == TpLayout::kKvHeads) {
      if (!shares_kv_heads(store, p.decl)) continue;
      // The whole tensor: ranks hold different heads, so they meet in the global rows.
      const int64_t row = p.decl.elements() / p.decl.shape[0];
      sums.push_back({p.gradient, p.decl.elements(), p.slice.begin * row});
    } else if (p.decl.tp_gradient == TpGradient::kSum) {
      TROUPE_CHECK(p.decl.tp_layout == TpLayout::kReplicated);
      sums.push_back({p.gradient, p.elements, 0});
    }
  }
  return sums;
}

void sum_over_tensor_parallel(const std::vector<TensorParallelSum>& sums, Communicator& tp) {
  constexpr int64_t kBatch = 1 << 24;  // bounds the buffer: 64 MiB in fp32, or one parameter
  for (size_t first = 0; first < sums.size();) {
    int64_t elements = sums[first].elements;
    size_t last = first + 1;
    while (last < sums.size() && elements + sums[last].elements <= kBatch) elements += sums[last++].elements;
    sum_batch(sums, first, last, elements, tp);
    first = last;
  }
}

}  // namespace troupe::optim
