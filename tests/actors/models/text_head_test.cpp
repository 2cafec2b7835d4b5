#include "actors/models/text_head.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>

#include "tests/actors/models/text_world.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// A loss is the difference of two numbers of the logits' size (up to ten or so): near 0 it keeps their error.
constexpr double kLogitError = 1e-5;

/// What one program on one rank says about the whole vocabulary, from textbook operators.
struct Expected {
  at::Tensor losses, hidden_gradient, weight_gradient;
};

Expected expected_of(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, double scale,
                     const at::Tensor& loss_weights = {}) {
  const at::Tensor log_probability = at::log_softmax(hidden.mm(weight.t()), 1);
  at::Tensor d = log_probability.exp().sub(at::one_hot(targets, weight.size(0))).mul(scale);
  at::Tensor losses = log_probability.gather(1, targets.unsqueeze(1)).squeeze(1).neg();
  if (loss_weights.defined()) {
    d = d.mul(loss_weights.unsqueeze(1));
    losses = losses.mul(loss_weights);
  }
  return {losses, d.mm(weight), d.t().mm(hidden)};
}

/// All ranks' answers, put together.
struct Answer {
  std::vector<TextHeadOutput> ranks;
  at::Tensor hidden_gradient, weight_gradient;
};

Answer run_head(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, int tp,
                int64_t chunk_bytes, bool predictions = false, const at::Tensor& loss_weights = {}) {
  Answer answer;
  answer.ranks.resize(static_cast<size_t>(tp));
  answer.hidden_gradient = at::zeros_like(hidden);
  answer.weight_gradient = at::zeros_like(weight);
  std::mutex joining;
  const int64_t vocabulary = weight.size(0), share = (vocabulary + tp - 1) / tp;
  run_on_ranks(tp, [&](World& world) {
    TextHeadInput input;
    input.hidden = hidden;
    input.targets = targets;
    input.loss_weights = loss_weights;
    input.first_token = std::min(vocabulary, share * world.rank());
    input.tokens = std::min(vocabulary, input.first_token + share) - input.first_token;
    input.weight.weight = at::ones({share, hidden.size(1)}).mul_(9);
    input.weight.weight.narrow(0, 0, input.tokens).copy_(weight.narrow(0, input.first_token, input.tokens));
    input.weight.gradient = at::zeros_like(input.weight.weight);
    input.scale = 0.25;
    input.want_gradient = !predictions;
    input.want_predictions = predictions;
    input.chunk_bytes = chunk_bytes;
    TextHeadOutput output = text_head(input, world.over({Axis::kTp}));
    const std::lock_guard<std::mutex> lock(joining);
    if (output.hidden_gradient.defined()) answer.hidden_gradient.add_(output.hidden_gradient);
    answer.weight_gradient.narrow(0, input.first_token, input.tokens)
        .copy_(input.weight.gradient.narrow(0, 0, input.tokens));
    answer.ranks[static_cast<size_t>(world.rank())] = std::move(output);
  });
  return answer;
}

}  // namespace

TEST_CASE("the head's loss and gradients do not depend on the chunk size or on the ranks that share the vocabulary") {
  const at::Tensor hidden = at::randn({23, 8}), weight = at::randn({13, 8});
  const at::Tensor targets = at::arange(23, at::kLong).remainder(13);
  const at::Tensor some_count_more = at::arange(23, at::kFloat).remainder(4).mul(0.75);
  for (const at::Tensor& loss_weights : {at::Tensor(), some_count_more})
    for (const int tp : {1, 2, 3, 5}) {  // with 5 ranks the last one's rows are 12 and two of padding
      for (const int64_t chunk_bytes : {1, 200, 1 << 20}) {
        INFO("tp " << tp << " chunk " << chunk_bytes << (loss_weights.defined() ? " weighted" : ""));
        const Expected expected = expected_of(hidden, weight, targets, 0.25, loss_weights);
        const Answer answer = run_head(hidden, weight, targets, tp, chunk_bytes, false, loss_weights);
        for (const TextHeadOutput& rank : answer.ranks) {
          REQUIRE(rank.losses == answer.ranks[0].losses);
          REQUIRE(rank.losses.size() == 23);
          CHECK(rank.correct == answer.ranks[0].correct);
        }
        for (size_t i = 0; i < 23; ++i)
          CHECK(answer.ranks[0].losses[i] ==
                Approx(expected.losses[static_cast<int64_t>(i)].item<double>()).epsilon(1e-5).margin(kLogitError));
        CHECK(relative_difference(answer.hidden_gradient, expected.hidden_gradient) < 1e-5);
        CHECK(relative_difference(answer.weight_gradient, expected.weight_gradient) < 1e-5);
      }
    }
}

TEST_CASE("a rank whose vocabulary rows are all padding takes part") {
  const at::Tensor hidden = at::randn({4, 8}), weight = at::randn({5, 8});  // two rows a rank: none left for the fourth
  const at::Tensor targets = at::tensor({0, 4, 2, 4}, at::kLong);
  const Expected expected = expected_of(hidden, weight, targets, 0.25);
  const Answer answer = run_head(hidden, weight, targets, 4, 1 << 20);
  CHECK(relative_difference(answer.hidden_gradient, expected.hidden_gradient) < 1e-5);
  CHECK(relative_difference(answer.weight_gradient, expected.weight_gradient) < 1e-5);
}

TEST_CASE("of equal logits the lowest token is the prediction, within a rank and between ranks") {
  at::Tensor weight = at::zeros({6, 2});
  for (const int64_t token : {1, 2, 4}) weight.select(0, token).fill_(1);
  const at::Tensor hidden = at::ones({3, 2}), targets = at::tensor({1, 2, 4}, at::kLong);
  for (const int tp : {1, 2, 3, 6}) {
    INFO("tp " << tp);
    for (const TextHeadOutput& rank : run_head(hidden, weight, targets, tp, 1 << 20, true).ranks) {
      CHECK(rank.predicted == std::vector<int64_t>{1, 1, 1});
      CHECK(rank.correct == 1);
    }
  }
}

TEST_CASE("no loss row is legal") {
  const Answer answer = run_head(at::zeros({0, 8}), at::ones({13, 8}), at::zeros({0}, at::kLong), 2, 1 << 20);
  CHECK(answer.ranks[1].losses.empty());
  CHECK(answer.ranks[1].correct == 0);
  CHECK(answer.hidden_gradient.size(0) == 0);
}
