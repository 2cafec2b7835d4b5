#include "base/data/batch_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace troupe;

namespace {

SampleIndex make_index(int n, bool with_images = true) {
  SampleIndex index;
  for (int i = 0; i < n; ++i) {
    IndexedSample s;
    s.record = i;
    s.tokens = 10 + i % 7;
    s.supervised = 1 + i % 3;
    s.id = std::to_string(i);
    for (int k = 0; with_images && k < i % 3; ++k) s.images.push_back({1, 4 + 2 * (i % 4), 6, 1 + k * 2});
    index.samples.push_back(s);
  }
  return index;
}

std::vector<int64_t> everything(const SampleIndex& index) {
  std::vector<int64_t> all(index.samples.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

std::vector<int64_t> order_of(const SampleIndex& index, const BatchPlanOptions& options, int64_t steps) {
  BatchPlanner planner(index, everything(index), options);
  std::vector<int64_t> order;
  for (int64_t step = 1; step <= steps; ++step) {
    const StepPlan plan = planner.plan(step);
    order.insert(order.end(), plan.samples.begin(), plan.samples.end());
  }
  return order;
}

}  // namespace

TEST_CASE("every sample comes once in each pass over the data") {
  const SampleIndex index = make_index(12);
  BatchPlanOptions options;
  options.global_batch = 4;
  const auto order = order_of(index, options, 6);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::set<int64_t> seen(order.begin() + epoch * 12, order.begin() + (epoch + 1) * 12);
    CHECK(seen.size() == 12);
  }
  CHECK(std::vector<int64_t>(order.begin(), order.begin() + 12) !=
        std::vector<int64_t>(order.begin() + 12, order.end()));
}

TEST_CASE("the order of samples does not depend on lanes and units, and starts anywhere") {
  const SampleIndex index = make_index(17);
  BatchPlanOptions one;
  one.global_batch = 4;
  BatchPlanOptions many = one;
  many.text_lanes = 2;
  many.vision_lanes = 3;
  many.microbatch_samples = 2;
  CHECK(order_of(index, one, 9) == order_of(index, many, 9));
  BatchPlanner fresh(index, everything(index), one), used(index, everything(index), one);
  for (int64_t step = 1; step < 8; ++step) (void)used.plan(step);
  CHECK(fresh.plan(8).samples == used.plan(8).samples);
}

TEST_CASE("another seed gives another order and no shuffle the file's") {
  const SampleIndex index = make_index(30);
  BatchPlanOptions a, b;
  a.global_batch = b.global_batch = 30;
  b.seed = 2;
  CHECK(order_of(index, a, 1) != order_of(index, b, 1));
  a.shuffle = false;
  CHECK(order_of(index, a, 1) == everything(index));
}

TEST_CASE("R02: the odd records at the end of the last epoch make a smaller last batch") {
  const SampleIndex index = make_index(10);
  JobSpec spec;
  spec.training.epochs = 2;
  spec.training.global_batch = 8;
  CHECK(training_steps(spec, 10) == 3);
  BatchPlanOptions options;
  options.global_batch = 8;
  options.text_lanes = 4;
  options.total_samples = 20;
  BatchPlanner planner(index, everything(index), options);
  CHECK(planner.plan(3).samples.size() == 4);
  CHECK(order_of(index, options, 3).size() == 20);
  for (const auto& lane : planner.plan(3).text) CHECK(lane.size() == planner.plan(3).text[0].size());
}

TEST_CASE("C10: an epoch has as many steps as it has batches") {
  JobSpec spec;
  spec.training.epochs = 1;
  spec.training.global_batch = 2;
  CHECK(training_steps(spec, 300) == 150);
  spec.training.epochs = 2;
  CHECK(training_steps(spec, 20) == 20);
}

TEST_CASE("units hold each sample and each image exactly once, in every cut") {
  const SampleIndex index = make_index(24);
  for (int lanes : {1, 2, 3}) {
    for (int64_t pack : {int64_t{0}, int64_t{25}, int64_t{40}}) {
      for (int images : {0, 1, 2}) {
        BatchPlanOptions options;
        options.global_batch = 12;
        options.text_lanes = lanes;
        options.vision_lanes = 4 - lanes;
        options.pack_tokens = pack;
        options.unit_images = images;
        options.microbatch_tokens = lanes == 2 ? 50 : 0;
        BatchPlanner planner(index, everything(index), options);
        const StepPlan plan = planner.plan(2);
        std::multiset<int32_t> samples, seen_images;
        for (const auto& lane : plan.text)
          for (const TextUnit& unit : lane) samples.insert(unit.samples.begin(), unit.samples.end());
        for (const auto& lane : plan.vision) {
          CHECK(static_cast<int>(lane.size()) == plan.vision_units());
          for (const VisionUnit& unit : lane) seen_images.insert(unit.images.begin(), unit.images.end());
        }
        CHECK(samples.size() == 12);
        CHECK(std::set<int32_t>(samples.begin(), samples.end()).size() == 12);
        CHECK(seen_images.size() == plan.images.size());
        CHECK(std::set<int32_t>(seen_images.begin(), seen_images.end()).size() == plan.images.size());
      }
    }
  }
}

TEST_CASE("packs stay within their token limit unless a sample alone is longer") {
  const SampleIndex index = make_index(40);
  BatchPlanOptions options;
  options.global_batch = 40;
  options.pack_tokens = 40;
  BatchPlanner planner(index, everything(index), options);
  const StepPlan plan = planner.plan(1);
  CHECK(plan.text_units() < 40);
  for (const TextUnit& unit : plan.text[0]) {
    int64_t tokens = 0;
    for (int32_t s : unit.samples)
      tokens += index.samples[static_cast<size_t>(plan.samples[static_cast<size_t>(s)])].tokens;
    CHECK(tokens <= 40);
  }
}

TEST_CASE("feeds name the text units that an encoder unit's rows enter") {
  const SampleIndex index = make_index(9);
  BatchPlanOptions options;
  options.shuffle = false;
  options.global_batch = 9;
  options.unit_images = 4;
  BatchPlanner planner(index, everything(index), options);
  const StepPlan plan = planner.plan(1);
  const auto feeds = plan.feeds();
  REQUIRE(feeds.size() == static_cast<size_t>(plan.vision_units()));
  for (size_t v = 0; v < feeds.size(); ++v) {
    std::set<int> expected;
    for (int32_t i : plan.vision[0][v].images)
      expected.insert(plan.images[static_cast<size_t>(i)].sample);  // one sample a unit
    CHECK(std::vector<int>(expected.begin(), expected.end()) == feeds[v]);
  }
}

TEST_CASE("a batch of text-only samples has text units and no encoder unit") {
  const SampleIndex index = make_index(4, false);
  BatchPlanOptions options;
  options.global_batch = 4;
  BatchPlanner planner(index, everything(index), options);
  const StepPlan plan = planner.plan(1);
  CHECK(plan.vision_units() == 0);
  CHECK(plan.text_units() == 4);
  CHECK(plan.rows == 0);
}

TEST_CASE("a batch without some of its samples is planned as the rest alone, wherever they stand in it") {
  const SampleIndex index = make_index(5);
  BatchPlanOptions options;
  options.global_batch = 7;  // two samples come twice
  options.shuffle = false;
  options.text_lanes = 2;
  BatchPlanner planner(index, everything(index), options);
  const StepPlan whole = planner.plan(1);
  REQUIRE(whole.samples == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1});
  const StepPlan rest = planner.without(whole, {1, 3});
  const StepPlan alone = planner.plan_samples(1, {0, 2, 4, 0});
  CHECK(rest.samples == alone.samples);
  CHECK(rest.left_out == 3);
  CHECK(rest.data_epoch == whole.data_epoch);
  CHECK(std::tie(rest.rows, rest.supervised, rest.tokens) == std::tie(alone.rows, alone.supervised, alone.tokens));
  CHECK(rest.images.size() == alone.images.size());
  CHECK(rest.feeds() == alone.feeds());
  const StepPlan none = planner.without(rest, {0, 2, 4});
  CHECK(none.samples.empty());
  CHECK(none.left_out == 7);
  CHECK(std::tie(none.rows, none.supervised, none.tokens) == std::make_tuple(0, 0, 0));
}
