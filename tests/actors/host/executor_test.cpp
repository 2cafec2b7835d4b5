#include "actors/host/executor.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "actors/host/evaluation.h"
#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// One process with both groups on one slot.
struct Trainer {
  explicit Trainer(const JobSpec& spec, BatchShape shape = {4, 4, 6, 20})
      : control(small_assignment(0, {{0}, {0}}, 1)) {
    job = small_job(control, spec, make_random_batch(shape, small_config(), 5));
    auto made = Boundary::create(*job);
    REQUIRE(made.ok());
    boundary = std::move(made).value();
    actors.push_back(std::make_unique<VisionActor>(*job, 0, 0, *boundary));
    actors.push_back(std::make_unique<TextActor>(*job, 1, 0, *boundary));
    for (auto& actor : actors) REQUIRE(actor->set_up().ok());
    executor = std::make_unique<Executor>(*job, actors, *boundary);
    planner = std::make_unique<BatchPlanner>(job->data->index(), job->training_samples,
                                             batch_plan_options(job->spec, job->config.vision, 4));
  }
  StepOutcome step(int64_t number, const GradientHook& hook = {}) {
    auto input = make_step_input(*job, *job->data, planner->plan(number), {{0, 0}, {1, 0}}, {});
    REQUIRE(input.ok());
    auto outcome = executor->train(*input, number, hook);
    if (!outcome.ok()) FAIL(outcome.error().to_string());
    return *outcome;
  }
  double mean_loss(const StepOutcome& outcome) { return outcome.sums.loss / outcome.sums.targets; }

  LocalControl control;
  std::unique_ptr<JobContext> job;
  std::unique_ptr<Boundary> boundary;
  std::vector<std::unique_ptr<Actor>> actors;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<BatchPlanner> planner;
};

}  // namespace

TEST_CASE("R16: the first loss of a random model is near ln(vocabulary) and training lowers it") {
  Trainer trainer(small_spec(4));
  const double first = trainer.mean_loss(trainer.step(1));
  CHECK(first == Approx(std::log(61.0)).epsilon(0.1));
  double last = first;
  for (int64_t step = 2; step <= 15; ++step) last = trainer.mean_loss(trainer.step(step));
  CHECK(last < 0.8 * first);
}

TEST_CASE("a run repeated is bitwise equal") {
  Trainer a(small_spec(4)), b(small_spec(4));
  for (int64_t step = 1; step <= 3; ++step) {
    const StepOutcome x = a.step(step), y = b.step(step);
    CHECK(x.sums.loss == y.sums.loss);
    CHECK(x.grad_norm == y.grad_norm);
  }
}

TEST_CASE("R15: loss and gradient norm do not depend on how the batch is cut into units") {
  JobSpec whole = small_spec(4), cut = small_spec(4), parcels = small_spec(4);
  whole.training.microbatch_samples = 4;
  parcels.groups[0].unit_images = 3;
  parcels.credits = 1;
  Trainer a(whole), b(cut), c(parcels);
  const StepOutcome x = a.step(1);
  for (Trainer* other : {&b, &c}) {
    const StepOutcome y = other->step(1);
    CHECK(y.sums.loss == Approx(x.sums.loss).epsilon(1e-6));
    CHECK(y.grad_norm == Approx(x.grad_norm).epsilon(1e-5));
  }
}

TEST_CASE("a frozen component keeps its weights bit by bit while the others move") {
  JobSpec spec = small_spec(4);
  spec.components["vision"].train = false;
  Trainer trainer(spec);
  const at::Tensor frozen = trainer.actors[0]->store().at("visual.blocks.0.attn.qkv.weight").weight.clone();
  const at::Tensor merger = trainer.actors[0]->store().at("visual.merger.mlp.0.weight").weight.clone();
  trainer.step(1);
  CHECK(frozen.equal(trainer.actors[0]->store().at("visual.blocks.0.attn.qkv.weight").weight));
  CHECK_FALSE(merger.equal(trainer.actors[0]->store().at("visual.merger.mlp.0.weight").weight));
}

TEST_CASE("a step with a gradient that is not finite changes no weight in any group and is reported as skipped") {
  Trainer trainer(small_spec(4));
  trainer.step(1);
  LocalParameter& poisoned = trainer.actors[1]->store().at("model.norm.weight");
  const at::Tensor kept = poisoned.weight.clone();
  const at::Tensor vision = trainer.actors[0]->store().at("visual.blocks.0.attn.qkv.weight").weight.clone();
  poisoned.weight.fill_(std::numeric_limits<float>::infinity());
  const StepOutcome outcome = trainer.step(2);
  CHECK(outcome.skipped);
  CHECK(vision.equal(trainer.actors[0]->store().at("visual.blocks.0.attn.qkv.weight").weight));
  poisoned.weight.copy_(kept);
  CHECK_FALSE(trainer.step(3).skipped);
}

TEST_CASE("the gradient hook sees reduced gradients before any weight changes") {
  Trainer trainer(small_spec(4));
  const at::Tensor before = trainer.actors[1]->store().at("model.norm.weight").weight.clone();
  int called = 0;
  trainer.step(1, [&](int64_t step) -> Status {
    ++called;
    CHECK(step == 1);
    CHECK(before.equal(trainer.actors[1]->store().at("model.norm.weight").weight));
    CHECK(trainer.actors[1]->optimizer()->full_local_gradient("model.norm.weight").abs().max().item<float>() > 0);
    return {};
  });
  CHECK(called == 1);
  CHECK_FALSE(before.equal(trainer.actors[1]->store().at("model.norm.weight").weight));
}

TEST_CASE("an error of the hook stops the step") {
  Trainer trainer(small_spec(4));
  auto input = make_step_input(*trainer.job, *trainer.job->data, trainer.planner->plan(1), {{0, 0}, {1, 0}}, {});
  REQUIRE(input.ok());
  const auto outcome = trainer.executor->train(*input, 1, [](int64_t) -> Status { return data_loss("disk gone"); });
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().code == ErrorCode::kDataLoss);
}

TEST_CASE("evaluation changes nothing and its loss is that of the next training step") {
  Trainer trainer(small_spec(4));
  trainer.step(1);
  const auto first = evaluate(*trainer.job, trainer.actors, *trainer.executor, 1, {});
  const auto again = evaluate(*trainer.job, trainer.actors, *trainer.executor, 1, {});
  REQUIRE(first.ok());
  REQUIRE(again.ok());
  CHECK(first->sums.loss == again->sums.loss);
  CHECK(first->sums.samples == 4);
  const StepOutcome next = trainer.step(2);
  CHECK(first->sums.loss == Approx(next.sums.loss).epsilon(1e-6));
}

TEST_CASE("an evaluation with shuffled images looks at other pictures") {
  Trainer trainer(small_spec(4));
  for (int64_t step = 1; step <= 5; ++step) trainer.step(step);
  EvaluationOptions shuffled;
  shuffled.shuffle_images = true;
  const auto own = evaluate(*trainer.job, trainer.actors, *trainer.executor, 5, {});
  const auto other = evaluate(*trainer.job, trainer.actors, *trainer.executor, 5, shuffled);
  REQUIRE(own.ok());
  REQUIRE(other.ok());
  CHECK(other->images_replaced == 4);
  CHECK(own->images_replaced == 0);
  CHECK(own->sums.loss != other->sums.loss);
}

TEST_CASE("the progress page sees every instruction of a step, and of one that waits whom it awaits") {
  class WatchedControl final : public LocalControl {
   public:
    using LocalControl::LocalControl;
    void publish_progress(int64_t, const char* instruction, int, int) override { seen.insert(instruction); }
    std::set<std::string> seen;
  };
  WatchedControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = small_job(control, small_spec(4), make_random_batch({4, 4, 6, 20}, small_config(), 5));
  auto boundary = Boundary::create(*job);
  REQUIRE(boundary.ok());
  std::vector<std::unique_ptr<Actor>> actors;
  actors.push_back(std::make_unique<VisionActor>(*job, 0, 0, **boundary));
  actors.push_back(std::make_unique<TextActor>(*job, 1, 0, **boundary));
  for (auto& actor : actors) REQUIRE(actor->set_up().ok());
  Executor executor(*job, actors, **boundary);
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 4));
  auto input = make_step_input(*job, *job->data, planner.plan(1), {{0, 0}, {1, 0}}, {});
  REQUIRE(input.ok());
  REQUIRE(executor.train(*input, 1, {}).ok());
  CHECK(control.seen.contains("text.wait(0 <- vision 0)"));
  CHECK(control.seen.contains("vision.wait(0 <- text 0, gradient)"));
  std::erase_if(control.seen, [](const std::string& said) { return said.find(".wait(") != std::string::npos; });
  CHECK(control.seen == std::set<std::string>{"forward", "backward", "post", "reduce", "reduce <- ranks of its group",
                                              "combine <- all groups", "update", "gather",
                                              "gather <- ranks of its group"});
}

TEST_CASE(
    "a step whose records all are left out runs: nothing crosses, the loss is zero, and the next step is as ever") {
  Trainer trainer(small_spec(4));
  const StepPlan whole = trainer.planner->plan(1);
  auto empty = make_step_input(*trainer.job, *trainer.job->data, trainer.planner->without(whole, {0, 1, 2, 3}),
                               {{0, 0}, {1, 0}}, {});
  REQUIRE(empty.ok());
  const auto outcome = trainer.executor->train(*empty, 1, {});
  if (!outcome.ok()) FAIL(outcome.error().to_string());
  CHECK(outcome->sums.loss == 0);
  CHECK(outcome->grad_norm == 0);
  CHECK_FALSE(outcome->skipped);
  CHECK(empty->plan.left_out == 4);
  CHECK(trainer.mean_loss(trainer.step(2)) > 0);
}
