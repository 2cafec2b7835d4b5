#include "actors/host/step_feed.h"

#include <catch2/catch.hpp>

#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

namespace {
std::unique_ptr<JobContext> feed_job(LocalControl& control, int sp = 1) {
  JobSpec spec = small_spec(4);
  spec.groups[0].mesh.set(Axis::kSp, sp);
  return small_job(control, spec, make_random_batch({4, 6, 10, 20}, small_config(), 5));
}
}  // namespace

TEST_CASE("the feed gives steps in order, each with the input of its members") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = feed_job(control);
  StepFeed feed(*job, {{0, 0}, {1, 0}}, 2, 5, 2);
  for (int64_t step = 2; step <= 5; ++step) {
    auto input = feed.take();
    REQUIRE(input.ok());
    CHECK(input->plan.step == step);
    CHECK(input->vision[0].size() == 4);
    CHECK(input->vision[1].empty());
    REQUIRE(input->text[1].size() == 4);
    const TextUnitBatch& unit = input->text[1][0];
    CHECK(unit.ids.size(0) == 20 + 15 + 2);
    CHECK(unit.positions.size(1) == unit.ids.size(0));
    CHECK(unit.vision_positions.size(0) == 15);
    CHECK(unit.loss_rows.size(0) == static_cast<int64_t>(unit.loss_samples.size()));
  }
}

TEST_CASE("a feed that is not emptied ends with its owner") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = feed_job(control);
  const StepFeed feed(*job, {{0, 0}}, 1, 1000, 1);
}

TEST_CASE("the patches of all sequence ranks together are those of the images") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto whole = feed_job(control), parts = feed_job(control, 3);
  BatchPlanner planner(whole->data->index(), whole->training_samples, batch_plan_options(whole->spec, 2, 4));
  auto one = make_step_input(*whole, *whole->data, planner.plan(1), {{0, 0}}, {});
  auto three = make_step_input(*parts, *parts->data, planner.plan(1), {{0, 0}, {0, 1}, {0, 2}}, {});
  REQUIRE(one.ok());
  REQUIRE(three.ok());
  int64_t rows = 0;
  double sum = 0;
  for (int r = 0; r < 3; ++r) {
    rows += three->vision[static_cast<size_t>(r)][0].patches.size(0);
    sum += three->vision[static_cast<size_t>(r)][0].patches.sum().item<double>();
  }
  CHECK(rows == one->vision[0][0].patches.size(0));
  CHECK(sum == Approx(one->vision[0][0].patches.sum().item<double>()).margin(1e-2));
}

TEST_CASE("targets are the tokens after their rows, within a sample") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = feed_job(control);
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, 2, 4));
  auto input = make_step_input(*job, *job->data, planner.plan(1), {{1, 0}}, {});
  REQUIRE(input.ok());
  const TextUnitBatch& unit = input->text[0][2];
  REQUIRE(unit.loss_rows.size(0) == 12);
  for (int64_t r = 0; r < unit.loss_rows.size(0); ++r)
    CHECK(unit.ids[unit.loss_rows[r].item<int64_t>() + 1].item<int64_t>() == unit.targets[r].item<int64_t>());
}
