#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <future>
#include <limits>

#include "tests/actors/host/small_job.h"

// How gradients are cut into buckets, and when these are moved, may change no number.

using namespace troupe;
using namespace troupe::testing;

namespace {

struct Layout {
  std::string name;
  Mesh vision, text;
  int zero = 1;
  bool tp_sequence = false;
  std::vector<std::string> frozen = {};
};

Mesh mesh(int dp, int sp, int tp) { return Mesh().set(Axis::kDp, dp).set(Axis::kSp, sp).set(Axis::kTp, tp); }

struct Numbers {
  std::vector<double> losses, norms;
  std::vector<int> buckets;  // of the actors' optimizers; 0: not trained
  std::map<std::string, at::Tensor> weights;
};

JobSpec spec_of(const Layout& layout, int64_t bucket_bytes) {
  JobSpec spec = small_spec(4);
  spec.groups[0].mesh = layout.vision;
  spec.groups[1].mesh = layout.text;
  for (GroupSpec& group : spec.groups) group.zero = layout.zero;
  spec.groups[1].tp_sequence = layout.tp_sequence;
  for (const std::string& name : layout.frozen) spec.components[name].train = false;
  spec.training.bucket_bytes = bucket_bytes;
  spec.groups[0].unit_images = 1;
  return spec;
}

/// Steps with all records, with one (a lane without any), with none at all, and with all again.
Result<StepInput> input_of(const JobContext& job, BatchPlanner& planner, const std::vector<FeedMember>& members,
                           int64_t step) {
  StepPlan plan = planner.plan(step);
  if (step == 2) plan = planner.without(plan, {0, 1, 3});
  if (step == 3) plan = planner.without(plan, {0, 1, 2, 3});
  return make_step_input(job, *job.data, std::move(plan), members, {});
}

Status run_slot(const Layout& layout, int64_t bucket_bytes, int self, KvStore& store, Numbers& numbers) {
  const auto slots = std::max(layout.vision.ranks(), layout.text.ranks());
  std::vector<std::vector<int>> groups(2);
  for (int r = 0; r < layout.vision.ranks(); ++r) groups[0].push_back(r);
  for (int r = 0; r < layout.text.ranks(); ++r) groups[1].push_back(r);
  LocalControl control(small_assignment(self, groups, slots), &store);
  const auto job =
      small_job(control, spec_of(layout, bucket_bytes), make_random_batch({4, 4, 6, 20}, small_config(), 5));
  TROUPE_ASSIGN(const auto boundary, Boundary::create(*job));
  std::vector<std::unique_ptr<Actor>> actors;
  if (self < layout.vision.ranks()) actors.push_back(std::make_unique<VisionActor>(*job, 0, self, *boundary));
  if (self < layout.text.ranks()) actors.push_back(std::make_unique<TextActor>(*job, 1, self, *boundary));
  std::vector<FeedMember> members;
  for (auto& actor : actors) {
    TROUPE_RETURN_IF_ERROR(actor->set_up());
    members.push_back({actor->group(), actor->rank()});
    numbers.buckets.push_back(actor->trained() ? actor->optimizer()->bucket_count() : 0);
  }
  Executor executor(*job, actors, *boundary);
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 4));
  for (int64_t step = 1; step <= 5; ++step) {
    TROUPE_ASSIGN(StepInput input, input_of(*job, planner, members, step));
    TROUPE_ASSIGN(const StepOutcome outcome, executor.train(input, step, {}));
    numbers.losses.push_back(outcome.sums.loss);
    numbers.norms.push_back(outcome.grad_norm);
  }
  for (auto& actor : actors) {
    actor->settle();
    for (const LocalParameter& p : actor->store().parameters()) numbers.weights[p.decl.name] = p.weight.clone();
  }
  return boundary->close(std::chrono::seconds(60));
}

std::vector<Numbers> run(const Layout& layout, int64_t bucket_bytes) {
  MemoryKvStore store;
  std::vector<Numbers> numbers(static_cast<size_t>(std::max(layout.vision.ranks(), layout.text.ranks())));
  std::vector<std::future<Status>> slots;
  for (size_t s = 0; s < numbers.size(); ++s)
    slots.push_back(std::async(std::launch::async, [&, s]() -> Status {
      try {
        return run_slot(layout, bucket_bytes, static_cast<int>(s), store, numbers[s]);
      } catch (const ErrorException& e) {
        return e.error;
      }
    }));
  for (auto& slot : slots) {
    const Status done = slot.get();
    if (!done.ok()) FAIL(layout.name + ": " + done.error().to_string());
  }
  return numbers;
}

/// One process with both groups' only ranks, whose stores can be listened to.
struct Lone {
  Lone() : control(small_assignment(0, {{0}, {0}}, 1)) {
    job =
        small_job(control, spec_of({"one rank", {}, {}}, 1 << 20), make_random_batch({4, 4, 6, 20}, small_config(), 5));
    boundary = Boundary::create(*job).value();
    actors.push_back(std::make_unique<VisionActor>(*job, 0, 0, *boundary));
    actors.push_back(std::make_unique<TextActor>(*job, 1, 0, *boundary));
    for (auto& actor : actors) REQUIRE(actor->set_up().ok());
  }
  double step() {
    Executor executor(*job, actors, *boundary);
    BatchPlanner planner(job->data->index(), job->training_samples,
                         batch_plan_options(job->spec, job->config.vision, 4));
    auto input = input_of(*job, planner, {{0, 0}, {1, 0}}, 1);
    REQUIRE(input.ok());
    auto outcome = executor.train(*input, 1, {});
    if (!outcome.ok()) FAIL(outcome.error().to_string());
    return outcome->sums.loss;
  }
  LocalControl control;
  std::unique_ptr<JobContext> job;
  std::unique_ptr<Boundary> boundary;
  std::vector<std::unique_ptr<Actor>> actors;
};

}  // namespace

TEST_CASE(
    "losses and weights are the same in every bit however gradients are cut, with lanes, units and steps without "
    "images") {
  at::set_num_threads(1);
  const std::vector<Layout> layouts = {
      {"sp 2, tp 2", mesh(1, 2, 1), mesh(1, 1, 2)},
      {"sp 2, tp 2, zero 0, sequence", mesh(1, 2, 1), mesh(1, 1, 2), 0, true},
      {"dp 2, dp 2", mesh(2, 1, 1), mesh(2, 1, 1)},
      {"dp 2, dp 2, zero 0", mesh(2, 1, 1), mesh(2, 1, 1), 0},
      {"dp 2 sp 2, dp 2 tp 2, sequence", mesh(2, 2, 1), mesh(2, 1, 2), 1, true},
      {"tp 3, KV heads shared", mesh(1, 1, 1), mesh(1, 1, 3)},
      {"vision frozen", mesh(1, 2, 1), mesh(2, 1, 1), 1, false, {"vision"}},
      {"merger frozen", mesh(2, 1, 1), mesh(1, 1, 2), 1, false, {"merger"}},
      {"text frozen", mesh(1, 2, 1), mesh(1, 1, 2), 1, false, {"text"}},
      {"encoder frozen", mesh(1, 2, 1), mesh(2, 1, 1), 1, false, {"vision", "merger"}},
  };
  for (const Layout& layout : layouts) {
    INFO(layout.name);
    const std::vector<Numbers> whole = run(layout, int64_t{1} << 30), cut = run(layout, 2000);
    REQUIRE(whole.front().losses.size() == 5);
    CHECK(whole.front().losses[0] != whole.front().losses[4]);
    for (size_t s = 0; s < whole.size(); ++s) {
      for (size_t a = 0; a < cut[s].buckets.size(); ++a) {
        const bool encodes = a == 0 && static_cast<int>(s) < layout.vision.ranks();
        // One rank alone reduces nothing, and cuts nothing.
        if (whole[s].buckets[a] > 0 && (encodes ? layout.vision : layout.text).ranks() > 1)
          CHECK(cut[s].buckets[a] > whole[s].buckets[a]);
      }
      CHECK(cut[s].losses == whole[s].losses);
      for (size_t i = 0; i < 5; ++i) CHECK(cut[s].norms[i] == Approx(whole[s].norms[i]).epsilon(1e-12));
      for (const auto& [name, weight] : whole[s].weights) {
        INFO(name);
        CHECK(at::equal(cut[s].weights.at(name), weight));
      }
    }
  }
}

TEST_CASE("gradients are final when the models say so, layer by layer from the last") {
  Lone lone;
  for (auto& actor : lone.actors) {
    ParameterStore& store = actor->store();
    std::vector<int> said;
    std::map<int, std::vector<at::Tensor>>
        seen;  // by first parameter: gradients from there on, at the last time it was said
    store.listen({{}, [&](int first) {
                    said.push_back(first);
                    seen[first].clear();
                    for (size_t p = static_cast<size_t>(first); p < store.parameters().size(); ++p)
                      seen[first].push_back(store.parameters()[p].gradient.clone());
                  }});
    lone.step();
    store.listen({});
    REQUIRE(seen.size() == 2);  // layers
    CHECK(said[0] > said[1]);
    for (const auto& [first, gradients] : seen)
      for (size_t i = 0; i < gradients.size(); ++i) {
        const LocalParameter& p = store.parameters()[static_cast<size_t>(first) + i];
        INFO(p.decl.name);
        CHECK(at::equal(gradients[i], p.gradient));
        CHECK(gradients[i].abs().max().item<float>() > 0);
      }
  }
}

TEST_CASE("a forward pass reads no weight before it says that it is about to use it") {
  Lone plain, poisoned;
  const double expected = plain.step();
  for (auto& actor : poisoned.actors) {
    ParameterStore& store = actor->store();
    std::vector<at::Tensor> kept;
    for (const LocalParameter& p : store.parameters()) kept.push_back(p.weight.clone());
    for (LocalParameter& p : store.parameters()) p.weight.fill_(std::numeric_limits<float>::quiet_NaN());
    store.listen({[&store, kept](int last) {
                    for (size_t p = 0; p <= static_cast<size_t>(last); ++p) store.parameters()[p].weight.copy_(kept[p]);
                  },
                  {}});
  }
  CHECK(poisoned.step() == expected);
}
