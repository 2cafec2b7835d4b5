#include "actors/host/metrics.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a step's line has every key of its own") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = small_job(control, small_spec(2), make_random_batch({2, 4, 6, 20}, small_config(), 5));
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 2));
  const StepPlan all = planner.plan(3);
  const StepPlan plan = planner.without(all, {all.samples[0]});
  StepOutcome outcome;
  outcome.sums.loss = 12;
  outcome.sums.targets = static_cast<double>(plan.supervised);
  outcome.lr = {{"text", 0.5}};
  const auto j = nlohmann::json::parse(step_line(*job, plan, outcome, {0.25, 0.125}, 1, 2));
  for (const char* key :
       {"step", "attempt", "data_epoch", "loss", "supervised_tokens", "tokens", "images", "vision_rows", "bad_records",
        "left_out", "grad_norm", "lr", "step_ms", "input_wait_ms", "tokens_per_s", "tflops_per_device"})
    CHECK(j.contains(key));
  CHECK(j["step"] == 3);
  CHECK(j["attempt"] == 2);
  CHECK(j["step_ms"] == 250);
  CHECK(j["input_wait_ms"] == 125);
  CHECK(j["tokens_per_s"].get<double>() == Approx(static_cast<double>(plan.tokens) / 0.25));
  CHECK(j["loss"].get<double>() == Approx(12.0 / static_cast<double>(plan.supervised)));
  CHECK(j["left_out"] == 1);
  CHECK(j["samples"] == 1);
  CHECK(j["images"] == 1);
  CHECK(j["vision_rows"] == 6);
}

TEST_CASE(
    "a step lasts from the end of the one before it, its wait for input included, and evaluations are no part of it") {
  using std::chrono::milliseconds;
  const StepClock::Time start{};
  StepClock clock(start);
  clock.input_came(start + milliseconds(500));
  StepTime time = clock.end(start + milliseconds(750));
  CHECK(time.seconds == Approx(0.75));
  CHECK(time.input_wait_seconds == Approx(0.5));
  clock.begin(start + milliseconds(4000));  // an evaluation took until then
  clock.input_came(start + milliseconds(4001));
  time = clock.end(start + milliseconds(4100));
  CHECK(time.seconds == Approx(0.1));
  CHECK(time.input_wait_seconds == Approx(0.001));
}

TEST_CASE("operations grow with patches, text and layers as the shapes say") {
  const ModelConfig config = small_config();
  SampleIndex index;
  IndexedSample s;
  s.tokens = 10;
  s.supervised = 4;
  index.samples.push_back(s);
  StepPlan plan;
  plan.samples = {0};
  const double text = step_flops(config, {}, plan, index);
  // 2 layers of q, k, v, o (24 x 24 twice, 24 x 8 twice) and three 24 x 40 products, causal attention, the head on
  // supervised rows.
  const double expected =
      3 * (2 * (2.0 * (2 * 24 * 24 + 2 * 24 * 8 + 3 * 24 * 40) * 10 + 2.0 * 10 * 10 * 24) + 2.0 * 24 * 61 * 4);
  CHECK(text == Approx(expected));
  plan.images = {{0, 0, 0, {1, 4, 4, 0}}};
  CHECK(step_flops(config, {}, plan, index) > text);
}

TEST_CASE("a frozen part costs its forward, and what gradients behind it need") {
  const ModelConfig config = small_config();
  SampleIndex index;
  IndexedSample s;
  s.tokens = 10;
  s.supervised = 4;
  index.samples.push_back(s);
  StepPlan plan;
  plan.samples = {0};
  const double linear = 2 * (2.0 * (2 * 24 * 24 + 2 * 24 * 8 + 3 * 24 * 40) * 10) + 2.0 * 24 * 61 * 4,
               attention = 2 * 2.0 * 10 * 10 * 24;
  CHECK(step_flops(config, {false, false, false}, plan, index) == Approx(linear + attention));
  CHECK(step_flops(config, {false, true, false}, plan, index) == Approx(2 * linear + 3 * attention));
  CHECK(step_flops(config, {false, false, true}, plan, index) == Approx(3 * (linear + attention)));
  plan.samples.clear();
  plan.images = {{0, 0, 0, {1, 4, 4, 0}}};
  const double merger = 4 * 2.0 * (96 * 96 + 96 * 24);
  const double frozen = step_flops(config, {false, false, false}, plan, index);
  CHECK(step_flops(config, {false, true, false}, plan, index) - frozen == Approx(merger));
  CHECK(step_flops(config, {true, false, false}, plan, index) == Approx(3 * (frozen - merger) + 2 * merger));
}

TEST_CASE("the loss of a step is that of its last attempt, and none is not zero") {
  const std::string folder = (std::filesystem::temp_directory_path() / "troupe-loss-test").string();
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/metrics.jsonl") << R"({"step": 4, "loss": 2.5}
{"step": 5, "loss": 2}
{"step": 4, "loss": 1.5}
{"step": 4, "eval_loss": 9}
{"step": 6, "loss": null}
{"step": 7, "lo)";
  CHECK(loss_of_step(folder, 4) == 1.5);
  CHECK(loss_of_step(folder, 5) == 2.0);
  CHECK_FALSE(loss_of_step(folder, 6));
  CHECK_FALSE(loss_of_step(folder, 7));
  std::filesystem::remove_all(folder);
  CHECK_FALSE(loss_of_step(folder, 4));
}

TEST_CASE("K10: steps that were run before and are run again are a further attempt") {
  const std::string folder = (std::filesystem::temp_directory_path() / "troupe-metrics-test").string();
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/metrics.jsonl")
      << "{\"step\":4,\"attempt\":1}\n{\"step\":5,\"attempt\":1}\n{\"step\":5,\"eval_loss\":1}\n{\"step\":6,\"att";
  CHECK(next_attempt(folder, 4) == 2);
  CHECK(next_attempt(folder, 5) == 1);
  std::filesystem::remove_all(folder);
  CHECK(next_attempt(folder, 0) == 1);
}
