#include "base/data/source_weights.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "base/data/batch_plan.h"

using namespace troupe;

namespace {

/// Samples of three sources, one behind the other.
SampleIndex make_index(const std::vector<int>& sizes) {
  SampleIndex index;
  for (size_t source = 0; source < sizes.size(); ++source)
    for (int i = 0; i < sizes[source]; ++i) {
      IndexedSample s;
      s.source = static_cast<int32_t>(source);
      s.record = i;
      s.tokens = 10 + i % 7;
      s.supervised = 1;
      index.samples.push_back(s);
    }
  return index;
}

std::vector<int64_t> everything(const SampleIndex& index) {
  std::vector<int64_t> all(index.samples.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

std::map<int64_t, int> counts_of(const std::vector<int64_t>& samples) {
  std::map<int64_t, int> counts;
  for (const int64_t s : samples) ++counts[s];
  return counts;
}

std::vector<int64_t> stream_of(const SampleIndex& index, const BatchPlanOptions& options, int64_t first, int64_t last) {
  BatchPlanner planner(index, everything(index), options);
  std::vector<int64_t> order;
  for (int64_t step = first; step <= last; ++step) {
    const StepPlan plan = planner.plan(step);
    order.insert(order.end(), plan.samples.begin(), plan.samples.end());
  }
  return order;
}

}  // namespace

TEST_CASE("A weight is whole passes and a part of the source") {
  CHECK(epoch_share(1, 10).of(10) == 10);
  CHECK(epoch_share(3, 10).of(10) == 30);
  CHECK(epoch_share(0.25, 10).extra == 3);  // 2.5, rounded
  CHECK(epoch_share(0.25, 10).whole == 0);
  CHECK(epoch_share(2.5, 10).of(10) == 25);
  CHECK(epoch_share(0.04, 10).of(10) == 0);
  const SampleIndex index = make_index({10, 20, 3});
  CHECK(epoch_size(index, everything(index), {0.5, 2, 1}) == 5 + 40 + 3);
  CHECK(epoch_size(index, everything(index), {}) == 33);
  CHECK(epoch_size(index, {0, 1, 10}, {0.5, 2, 1}) == 1 + 2);
}

TEST_CASE("Every epoch has each record as often as its source's weight says, the extra ones chosen anew and in turn") {
  const SampleIndex index = make_index({10, 8, 3});
  const auto usable = everything(index);
  const std::vector<double> weights{0.5, 2.25, 1};
  std::map<int64_t, int> all;
  std::set<std::vector<int64_t>> choices;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const auto samples = epoch_samples(index, usable, weights, 7, epoch);
    CHECK(samples == epoch_samples(index, usable, weights, 7, epoch));
    CHECK(static_cast<int64_t>(samples.size()) == epoch_size(index, usable, weights));
    const auto counts = counts_of(samples);
    int once = 0, thrice = 0;
    for (const auto& [sample, n] : counts) {
      all[sample] += n;
      const int source = index.samples[static_cast<size_t>(sample)].source;
      if (source == 0) {
        CHECK(n == 1);
        ++once;
      } else if (source == 1) {
        CHECK((n == 2 || n == 3));
        thrice += n == 3;
      } else {
        CHECK(n == 1);
      }
    }
    CHECK(once == 5);
    CHECK(thrice == 2);
    std::vector<int64_t> chosen;
    for (const auto& [sample, n] : counts)
      if (n == 3) chosen.push_back(sample);
    choices.insert(chosen);
  }
  CHECK(choices.size() == 4);
  for (const auto& [sample, n] : all)
    CHECK(n == (index.samples[static_cast<size_t>(sample)].source == 0   ? 2
                : index.samples[static_cast<size_t>(sample)].source == 1 ? 9
                                                                         : 4));
  CHECK(epoch_samples(index, usable, weights, 8, 0) != epoch_samples(index, usable, weights, 7, 0));
}

TEST_CASE("Without a shuffle the whole passes come one behind the other in the file's order") {
  const SampleIndex index = make_index({2, 2});
  CHECK(epoch_samples(index, everything(index), {2, 1}, 1, 0) == std::vector<int64_t>{0, 1, 2, 3, 0, 1});
}

TEST_CASE("The weighted order does not depend on lanes and units, and goes on anywhere") {
  const SampleIndex index = make_index({12, 9});
  BatchPlanOptions options;
  options.global_batch = 4;
  options.source_weights = {0.5, 1.5};  // 6 + 14 samples: 5 steps
  const auto whole = stream_of(index, options, 1, 15);
  REQUIRE(whole.size() == 60);
  std::set<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> part(whole.begin() + epoch * 20, whole.begin() + (epoch + 1) * 20);
    epochs.insert(part);
    int64_t second = std::count_if(part.begin(), part.end(), [](int64_t s) { return s >= 12; });
    CHECK(second == 14);
  }
  CHECK(epochs.size() == 3);
  for (int lanes = 1; lanes <= 4; ++lanes) {
    BatchPlanOptions other = options;
    other.text_lanes = lanes;
    other.vision_lanes = 5 - lanes;
    other.microbatch_samples = lanes;
    auto order = stream_of(index, other, 1, 7);
    const auto rest = stream_of(index, other, 8, 15);  // as a resumed run does
    order.insert(order.end(), rest.begin(), rest.end());
    CHECK(order == whole);
  }
  BatchPlanner planner(index, everything(index), options);
  CHECK(planner.plan(5).data_epoch == Approx(1));
}

TEST_CASE("Weights of one, and none, leave the order as it is without them") {
  const SampleIndex index = make_index({5, 6});
  BatchPlanOptions with, without;
  with.global_batch = without.global_batch = 3;
  with.source_weights = {1, 1};
  CHECK(stream_of(index, with, 1, 9) == stream_of(index, without, 1, 9));
  DataSource a, b;
  CHECK(source_weights({a, b}).empty());
  b.weight = 0.5;
  CHECK(source_weights({a, b}) == std::vector<double>{1, 0.5});
  CHECK(source_weights_text({a, b}) == "1, 0.5");
}
