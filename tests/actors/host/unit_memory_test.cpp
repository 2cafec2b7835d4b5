#include "base/program/unit_memory.h"

#include <catch2/catch.hpp>

#include "actors/host/memory.h"
#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("what an encoder's unit keeps for its backward is what its rows are reckoned to keep") {
  install_counting_allocator();
  const bool frozen_merger = GENERATE(false, true);
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  JobSpec spec = small_spec(6);
  spec.components["merger"].train = !frozen_merger;
  spec.placement.kind = PlacementKind::kColocated;
  const auto job = small_job(control, spec, make_random_batch({6, 16, 24, 20}, small_config(), 5));
  auto boundary = Boundary::create(*job);
  REQUIRE(boundary.ok());
  VisionActor encoder(*job, 0, 0, **boundary);
  REQUIRE(encoder.set_up().ok());
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 6));
  auto input = make_step_input(*job, *job->data, planner.plan(1), {{0, 0}}, {});
  REQUIRE(input.ok());
  (*boundary)->begin_step(input->plan, job->data->index(), false);
  encoder.begin_step(*input, 0, 1.0, false);
  const int64_t before = live_bytes(1);
  {
    const AllocationOwner owner(1);
    REQUIRE(encoder.forward(0).ok());
  }
  const StepShape shape = [&] {
    Program program = job->training;
    program.row_bytes = {encoder_row_bytes(job->spec, job->config.vision)};
    return shape_of(program, input->plan);
  }();
  const auto reckoned = static_cast<double>(shape.held_bytes[0][0]);
  const auto kept = static_cast<double>(live_bytes(1) - before);
  CAPTURE(kept, reckoned, input->plan.rows);
  CHECK(kept > 0.85 * reckoned);
  CHECK(kept < 1.1 * reckoned);
}
