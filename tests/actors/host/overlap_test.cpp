#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <thread>

#include "tests/actors/host/small_job.h"

// Nothing that is a matter of time may change a number: windows, orders of arrival, channels.

using namespace troupe;
using namespace troupe::testing;

namespace {

struct Numbers {
  std::vector<double> losses, norms;
  bool operator==(const Numbers&) const = default;
};

struct Way {
  int credits = 2;
  bool disjoint = true;
  MessageDelays delays = {};
  double memory_gib = 0;
  BoundaryChannel channel = BoundaryChannel::kAuto;
};

/// Three steps of one slot of a job with an encoder rank and a decoder rank.
Status run_slot(const Way& way, int self, KvStore& store, Numbers& numbers) {
  const std::vector<std::vector<int>> groups =
      way.disjoint ? std::vector<std::vector<int>>{{0}, {1}} : std::vector<std::vector<int>>{{0}, {0}};
  LocalControl control(small_assignment(self, groups, way.disjoint ? 2 : 1), &store);
  JobSpec spec = small_spec(6);
  spec.placement.kind = way.disjoint ? PlacementKind::kDisjoint : PlacementKind::kColocated;
  spec.credits = way.credits;
  spec.memory_gib = way.memory_gib;
  spec.channel = way.channel;
  const auto job = small_job(control, spec, make_random_batch({6, 4, 6, 20}, small_config(), 5));
  job->message_delays = way.delays;
  TROUPE_ASSIGN(const auto boundary, Boundary::create(*job));
  std::vector<std::unique_ptr<Actor>> actors;
  if (groups[0][0] == self) actors.push_back(std::make_unique<VisionActor>(*job, 0, 0, *boundary));
  if (groups[1][0] == self) actors.push_back(std::make_unique<TextActor>(*job, 1, 0, *boundary));
  std::vector<FeedMember> members;
  for (auto& actor : actors) {
    TROUPE_RETURN_IF_ERROR(actor->set_up());
    members.push_back({actor->group(), actor->rank()});
  }
  Executor executor(*job, actors, *boundary);
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 6));
  for (int64_t step = 1; step <= 3; ++step) {
    TROUPE_ASSIGN(StepInput input, make_step_input(*job, *job->data, planner.plan(step), members, {}));
    TROUPE_ASSIGN(const StepOutcome outcome, executor.train(input, step, {}));
    numbers.losses.push_back(outcome.sums.loss);
    numbers.norms.push_back(outcome.grad_norm);
  }
  return boundary->close(std::chrono::seconds(30));
}

/// The numbers of every slot, which must be the same.
Numbers run(const Way& way) {
  MemoryKvStore store;
  std::vector<Numbers> numbers(way.disjoint ? 2 : 1);
  std::vector<std::future<Status>> slots;
  for (size_t s = 0; s < numbers.size(); ++s)
    slots.push_back(
        std::async(std::launch::async, [&, s] { return run_slot(way, static_cast<int>(s), store, numbers[s]); }));
  for (auto& slot : slots) {
    const Status done = slot.get();
    if (!done.ok()) FAIL(done.error().to_string());
  }
  for (const Numbers& n : numbers) CHECK(n == numbers.front());
  return numbers.front();
}

}  // namespace

TEST_CASE("losses and norms are bitwise equal with any number of credits, on one slot and on two") {
  const Numbers first = run({1});
  REQUIRE(first.losses.size() == 3);
  CHECK(first.losses[0] != first.losses[2]);
  for (const int credits : {2, 4, 0}) CHECK(run({credits}) == first);
  CHECK(run({2, false}) == first);
}

TEST_CASE("losses and norms are bitwise equal over every channel") {
  const Numbers in_process = run({2, false});
  for (const auto channel : {BoundaryChannel::kAuto, BoundaryChannel::kSharedMemory, BoundaryChannel::kTcp})
    CHECK(run({2, true, {}, 0, channel}) == in_process);
}

TEST_CASE("a bound on the memory of units in flight changes the order and no number") {
  const Numbers unbound = run({0});
  constexpr double kTiny = 1e-9, kSome = 2e-4;  // less than any unit, and about two of them
  for (const bool disjoint : {false, true})
    for (const double memory : {kTiny, kSome}) CHECK(run({0, disjoint, {}, memory}) == unbound);
}

TEST_CASE("random delays and reorderings of messages change nothing, bitwise") {
  const Numbers undisturbed = run({2});
  for (uint64_t seed = 1; seed <= 6; ++seed)
    CHECK(run({seed % 2 == 0 ? 2 : 4, true, {seed, std::chrono::milliseconds(3)}}) == undisturbed);
  CHECK(run({2, false, {9, std::chrono::milliseconds(3)}}) == undisturbed);
}
