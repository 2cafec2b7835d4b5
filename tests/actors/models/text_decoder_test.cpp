#include "actors/models/text_decoder.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <catch2/catch.hpp>

#include "tests/actors/models/text_world.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

const std::vector<std::string> kCases = {"kv1_untied", "kv1_tied",    "kv2_untied", "kv2_tied", "kv3_untied",
                                         "kv3_tied",   "kv12_untied", "kv12_tied",  "text_only"};

void check_losses(const TextCase& c, const TextResult& result) {
  CHECK(result.loss_sum == Approx(c.at("expected")[0].item<double>()).epsilon(1e-5));
  CHECK(result.correct == c.at("expected")[1].item<int64_t>());
  REQUIRE(result.sample_loss.size() == c.batch.sequence_starts.size() - 1);
  for (size_t i = 0; i < result.sample_loss.size(); ++i)
    CHECK(result.sample_loss[i] ==
          Approx(c.at("sample_loss")[static_cast<int64_t>(i)].item<double>()).epsilon(1e-5).margin(1e-9));
}

void check_gradients(const TextCase& c, const TextRun& run, bool sequence, double tolerance) {
  size_t compared = 0;
  for (const auto& [name, expected] : c.tensors) {
    if (name.rfind("g.", 0) != 0 || name == "g.vision_rows") continue;
    INFO(name);
    REQUIRE(run.gradients.contains(name.substr(2)));
    CHECK(relative_difference(run.gradients.at(name.substr(2)), expected) < tolerance);
    ++compared;
  }
  CHECK(compared == run.gradients.size());
  CHECK(relative_difference(whole_vision_gradient(run, sequence), c.at("g.vision_rows")) < tolerance);
}

std::vector<int64_t> list(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

}  // namespace

TEST_CASE("loss and every gradient of packed samples equal the sum of the samples alone in transformers") {
  for (const std::string& name : kCases) {
    INFO(name);
    const TextCase c = load_text_case(name);
    const TextRun run = run_text_case(c, {});
    check_losses(c, run.ranks[0].result);
    check_gradients(c, run, false, 1e-4);
    CHECK(run.ranks[0].next_tokens == list(c.at("next_tokens")));
    CHECK(run.ranks[0].result.predicted.empty());
  }
}

TEST_CASE("evaluation predicts the tokens that transformers does, and leaves no gradient") {
  const TextCase c = load_text_case("kv3_untied");
  TextRunOptions options;
  options.keep_context = false;
  const TextRun run = run_text_case(c, options);
  check_losses(c, run.ranks[0].result);
  CHECK(run.ranks[0].result.predicted == list(c.at("predicted")));
  for (const auto& [name, gradient] : run.gradients) CHECK(gradient.abs().max().item<double>() == 0);
}

TEST_CASE("the image token's embedding gets no gradient through rows that vision rows replace") {
  const TextCase c = load_text_case("kv3_untied");
  const TextRun run = run_text_case(c, {});
  const int64_t image_token = c.batch.ids[c.batch.vision_positions[0].item<int64_t>()].item<int64_t>();
  CHECK(run.gradients.at("model.embed_tokens.weight")[image_token].abs().max().item<double>() == 0);
}

TEST_CASE("vision rows may come in any order of positions") {
  TextCase c = load_text_case("kv3_untied");
  c.batch.vision_positions = c.batch.vision_positions.flip(0);
  c.vision_rows = c.vision_rows.flip(0);
  const TextRun run = run_text_case(c, {});
  check_losses(c, run.ranks[0].result);
  CHECK(relative_difference(run.ranks[0].vision_gradient.flip(0), c.at("g.vision_rows")) < 1e-4);
}

TEST_CASE("gradients of several units add up") {
  const TextCase c = load_text_case("kv3_tied");
  TextRunOptions twice;
  twice.backward_runs = 2;
  const TextRun run = run_text_case(c, twice);
  for (const auto& [name, gradient] : run.gradients) {
    INFO(name);
    CHECK(relative_difference(gradient, c.at("g." + name).mul(2)) < 1e-4);
  }
}

TEST_CASE("a frozen decoder still gives the vision rows' gradient") {
  const TextCase c = load_text_case("kv3_tied");
  TextRunOptions options;
  options.frozen = true;
  const TextRun run = run_text_case(c, options);
  CHECK(run.gradients.empty());
  CHECK(relative_difference(run.ranks[0].vision_gradient, c.at("g.vision_rows")) < 1e-4);
  options.want_vision_gradient = false;
  CHECK_FALSE(run_text_case(c, options).ranks[0].vision_gradient.defined());
}

TEST_CASE("a unit without loss rows has loss zero and zero gradients on every layout") {
  const TextCase c = load_text_case("unsupervised");
  for (const bool sequence : {false, true}) {
    TextRunOptions options;
    options.tp = 2;
    options.sequence = sequence;
    const TextRun run = run_text_case(c, options);
    for (const TextRankRun& rank : run.ranks) CHECK(rank.result.loss_sum == 0);
    for (const auto& [name, gradient] : run.gradients) CHECK(gradient.abs().max().item<double>() == 0);
    CHECK(at::equal(whole_vision_gradient(run, sequence), at::zeros_like(c.vision_rows)));
    CHECK(run.ranks[1].next_tokens == list(c.at("next_tokens")));
  }
}

TEST_CASE("an empty unit is legal on every layout") {
  TextCase c = load_text_case("kv3_untied");
  const at::Tensor none = at::zeros({0}, at::kLong);
  c.batch = {none, at::zeros({3, 0}, at::kLong), {0}, none, none, {}, none};
  c.vision_rows = c.vision_rows.narrow(0, 0, 0);
  for (const int tp : {1, 3}) {
    for (const bool sequence : {false, true}) {
      TextRunOptions options;
      options.tp = tp;
      options.sequence = sequence;
      const TextRun run = run_text_case(c, options);
      CHECK(run.ranks.back().result.loss_sum == 0);
      CHECK(run.ranks.back().vision_gradient.size(0) == 0);
      CHECK(run.ranks.back().next_tokens.empty());
    }
  }
}

TEST_CASE("tensor parallelism of any size gives the loss and gradients of one rank, with equal replicas") {
  for (const std::string& name : kCases) {
    const TextCase c = load_text_case(name);
    for (const int tp : {2, 3, 4}) {
      for (const bool sequence : {false, true}) {
        INFO(name << " tp " << tp << (sequence ? " sequence" : ""));
        TextRunOptions options;
        options.tp = tp;
        options.sequence = sequence;
        const TextRun run = run_text_case(c, options);
        check_losses(c, run.ranks[0].result);
        check_gradients(c, run, sequence, 1e-4);
        CHECK(run.replicas_equal);
        for (const TextRankRun& rank : run.ranks) {
          CHECK(rank.result.loss_sum == run.ranks[0].result.loss_sum);
          CHECK(rank.result.correct == run.ranks[0].result.correct);
          CHECK(rank.next_tokens == list(c.at("next_tokens")));
          if (!sequence) CHECK(at::equal(rank.vision_gradient, run.ranks[0].vision_gradient));
        }
      }
    }
  }
}

TEST_CASE("fewer tokens than ranks leave some ranks without rows, and without effect") {
  TextCase c = load_text_case("kv3_untied");
  const at::Tensor first = at::zeros({1}, at::kLong);
  c.batch = {c.batch.ids.narrow(0, 0, 3),
             c.batch.positions.narrow(1, 0, 3).contiguous(),
             {0, 3},
             first,
             first.add(5),
             {0},
             first.add(2)};
  c.vision_rows = c.vision_rows.narrow(0, 0, 1);
  const TextRun alone = run_text_case(c, {});
  TextRunOptions options;
  options.tp = 4;
  for (const bool sequence : {false, true}) {
    options.sequence = sequence;
    const TextRun run = run_text_case(c, options);
    CHECK(run.ranks[3].result.loss_sum == Approx(alone.ranks[0].result.loss_sum).epsilon(1e-5));
    CHECK(run.ranks[3].next_tokens == alone.ranks[0].next_tokens);
    for (const auto& [name, gradient] : alone.gradients) {
      INFO(name << (sequence ? " sequence" : ""));
      CHECK(relative_difference(run.gradients.at(name), gradient) < 1e-4);
    }
    CHECK(relative_difference(whole_vision_gradient(run, sequence), alone.ranks[0].vision_gradient) < 1e-4);
  }
}

TEST_CASE("a layout run again gives the same bits") {
  const TextCase c = load_text_case("kv2_tied");
  for (const bool sequence : {false, true}) {
    TextRunOptions options;
    options.tp = 2;
    options.sequence = sequence;
    const TextRun first = run_text_case(c, options), second = run_text_case(c, options);
    CHECK(first.ranks[0].result.loss_sum == second.ranks[0].result.loss_sum);
    for (const auto& [name, gradient] : first.gradients) {
      INFO(name);
      CHECK(at::equal(gradient, second.gradients.at(name)));
    }
  }
}

TEST_CASE("bf16 with fp32 gradients stays near fp32") {
  const TextCase c = load_text_case("kv3_untied");
  for (const int tp : {1, 2}) {
    TextRunOptions options;
    options.tp = tp;
    options.sequence = tp > 1;
    options.dtype = at::kBFloat16;
    const TextRun run = run_text_case(c, options);
    CHECK(run.ranks[0].result.loss_sum == Approx(c.at("expected")[0].item<double>()).epsilon(2e-2));
    for (const auto& [name, gradient] : run.gradients) {
      INFO(name);
      CHECK(gradient.scalar_type() == at::kFloat);
      CHECK(relative_difference(gradient, c.at("g." + name)) < 0.15);
    }
  }
}
