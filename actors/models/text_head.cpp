#include "actors/models/text_head.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "actors/kernels/matrix_product.h"

namespace troupe {
namespace {

/// From the padded number of vocabulary rows, which all ranks share.
int64_t chunk_rows(const TextHeadInput& input) {
  const int64_t row_bytes = std::max<int64_t>(input.weight.weight.size(0), 1) * 4;
  return std::max<int64_t>(input.chunk_bytes / row_bytes, 1);
}

/// fp32 logits [n, tokens] of this rank's real vocabulary rows.
at::Tensor local_logits(const at::Tensor& hidden, const at::Tensor& weight) {
  if (hidden.is_cuda() && hidden.scalar_type() != at::kFloat) return at::mm(hidden, weight.t(), at::kFloat);
  return product_with_transpose(hidden, weight).to(at::kFloat);
}

/// Per row of a chunk: the largest logit of the whole vocabulary, the sum of exponentials below it, the target's logit,
/// and whether the target is the first of the largest.
struct RowFacts {
  at::Tensor largest, sum, target_logit, correct, predicted;
};

struct LocalTargets {
  at::Tensor held;   // bool [n]: the target is one of this rank's tokens
  at::Tensor index;  // int64 [n]: its row here, 0 where not held
};

LocalTargets local_targets(const TextHeadInput& input, const at::Tensor& targets) {
  const at::Tensor index = targets.sub(input.first_token);
  at::Tensor held = index.ge(0).logical_and_(index.lt(input.tokens));
  return {held, index.mul(held)};
}

/// Turns `logits` into exp(logit - largest) in place.
RowFacts row_facts(const TextHeadInput& input, const at::Tensor& targets, const LocalTargets& local, at::Tensor& logits,
                   Communicator& tp) {
  const int64_t n = logits.size(0);
  const bool any = input.tokens > 0;
  at::Tensor largest, first;
  if (any) {
    std::tie(largest, first) = at::max(logits, 1);
  } else {
    largest = at::full({n}, -std::numeric_limits<float>::infinity(), logits.options());
    first = at::zeros({n}, targets.options());
  }
  const at::Tensor mine = largest.clone();
  tp.all_reduce_max(largest);
  first.add_(input.first_token);
  const at::Tensor holds_largest = mine.eq(largest);
  // The target loses its place to an equal logit of a lower token only.
  const at::Tensor earlier = holds_largest.logical_and(first.lt(targets)).to(at::kFloat);
  at::Tensor target_logit = at::zeros({n}, logits.options());
  if (any) target_logit = logits.gather(1, local.index.unsqueeze(1)).squeeze(1).mul_(local.held);
  logits.sub_(largest.unsqueeze(1)).exp_();
  at::Tensor sums = at::stack({logits.sum(1), target_logit, earlier});
  tp.all_reduce_sum(sums);
  RowFacts facts{largest, sums[0], sums[1], {}, {}};
  facts.correct = facts.target_logit.eq(largest).logical_and_(sums[2].eq(0));
  if (input.want_predictions) {
    at::Tensor candidate =
        at::where(holds_largest, first.neg(), at::full({n}, std::numeric_limits<int64_t>::min(), first.options()));
    tp.all_reduce_max(candidate);
    facts.predicted = candidate.neg();
  }
  return facts;
}

/// From exponentials to the gradient of the logits; adds the weight's and writes the hidden rows'. `row_weights` [n]
/// may be undefined.
void chunk_gradients(const TextHeadInput& input, const at::Tensor& hidden, const LocalTargets& local,
                     const at::Tensor& row_weights, const at::Tensor& sum, at::Tensor& probability,
                     at::Tensor hidden_gradient) {
  const at::Tensor weight = input.weight.weight.narrow(0, 0, input.tokens);
  at::Tensor row_scale = sum.reciprocal().mul_(input.scale);
  if (row_weights.defined()) row_scale.mul_(row_weights);
  probability.mul_(row_scale.unsqueeze(1));
  if (input.tokens > 0) {
    at::Tensor minus = local.held.to(at::kFloat).mul_(-input.scale);
    if (row_weights.defined()) minus.mul_(row_weights);
    probability.scatter_add_(1, local.index.unsqueeze(1), minus.unsqueeze(1));
  }
  const at::Tensor d = probability.to(hidden.scalar_type());
  hidden_gradient.copy_(product_with_transpose(d, weight.t()));
  if (input.weight.gradient.defined())
    add_transposed_product(input.weight.gradient.narrow(0, 0, input.tokens), d, hidden);
}

}  // namespace

TextHeadOutput text_head(const TextHeadInput& input, Communicator& tp) {
  const int64_t rows = input.hidden.size(0), step = chunk_rows(input);
  const at::Tensor weight = input.weight.weight.narrow(0, 0, input.tokens);
  const auto fp32 = input.hidden.options().dtype(at::kFloat);
  at::Tensor losses = at::empty({rows}, fp32), correct = at::empty({rows}, fp32);
  at::Tensor predicted = at::empty({input.want_predictions ? rows : 0}, input.targets.options());
  TextHeadOutput output;
  if (input.want_gradient) output.hidden_gradient = at::empty_like(input.hidden);
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t n = std::min(step, rows - begin);
    const at::Tensor hidden = input.hidden.narrow(0, begin, n), targets = input.targets.narrow(0, begin, n);
    const LocalTargets local = local_targets(input, targets);
    at::Tensor logits = local_logits(hidden, weight);
    const RowFacts facts = row_facts(input, targets, local, logits, tp);
    losses.narrow(0, begin, n).copy_(facts.sum.log().add_(facts.largest).sub_(facts.target_logit));
    const at::Tensor row_weights =
        input.loss_weights.defined() ? input.loss_weights.narrow(0, begin, n) : input.loss_weights;
    if (row_weights.defined()) losses.narrow(0, begin, n).mul_(row_weights);
    correct.narrow(0, begin, n).copy_(facts.correct);
    if (input.want_predictions) predicted.narrow(0, begin, n).copy_(facts.predicted);
    if (input.want_gradient)
      chunk_gradients(input, hidden, local, row_weights, facts.sum, logits, output.hidden_gradient.narrow(0, begin, n));
  }
  const at::Tensor host_losses = losses.to(at::kCPU), host_predicted = predicted.to(at::kCPU);
  output.losses.assign(host_losses.const_data_ptr<float>(), host_losses.const_data_ptr<float>() + rows);
  output.predicted.assign(host_predicted.const_data_ptr<int64_t>(),
                          host_predicted.const_data_ptr<int64_t>() + host_predicted.numel());
  output.correct = correct.to(at::kLong).sum().item<int64_t>();
  return output;
}

}  // namespace troupe
