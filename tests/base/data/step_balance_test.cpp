#include "base/data/step_balance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace troupe;

namespace {

/// The encoder of the published 3B model.
VisionConfig published_encoder() {
  VisionConfig config;
  config.depth = 32;
  config.hidden = 1280;
  config.intermediate = 3420;
  config.heads = 16;
  config.out_hidden = 2048;
  config.full_attention_blocks = {7, 15, 23, 31};
  return config;
}

/// A mix as public instruction sets have it: a quarter text only, photographs of common sizes, documents, now and then
/// several pictures.
SampleIndex natural_mix(int samples, unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const int sides[][2] = {{336, 336}, {448, 448},  {480, 640},  {640, 480},
                          {612, 448}, {768, 1024}, {1064, 784}, {252, 364}};
  SampleIndex index;
  for (int i = 0; i < samples; ++i) {
    IndexedSample s;
    s.record = i;
    const int kind = draw(0, 9);
    const int images = kind < 2 ? 0 : kind < 9 ? 1 : draw(2, 4);
    s.tokens = draw(20, 200) + (draw(0, 3) == 0 ? draw(200, 1500) : 0);
    for (int k = 0; k < images; ++k) {
      const auto& side = sides[draw(0, 7)];
      IndexedImage image{1, side[0] / 28 * 2, side[1] / 28 * 2, s.tokens};
      s.tokens += static_cast<int32_t>(image.tokens(2)) + 2;
      s.images.push_back(image);
    }
    s.supervised = draw(1, 20);
    index.samples.push_back(s);
  }
  return index;
}

std::vector<int64_t> everything(const SampleIndex& index) {
  std::vector<int64_t> all(index.samples.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

BatchPlanOptions of_mesh(const VisionConfig& config, const Mesh& vision, int text_lanes, int64_t batch) {
  BatchPlanOptions options;
  options.global_batch = batch;
  options.text_lanes = text_lanes;
  options.vision_lanes = vision.size(Axis::kDp);
  options.frame_cost = frame_cost(config);
  return options;
}

/// Packs that first fit, the longest first, takes for `lengths`: an own writing of the textbook rule.
size_t first_fit_decreasing(std::vector<int64_t> lengths, int64_t room) {
  std::sort(lengths.rbegin(), lengths.rend());
  std::vector<int64_t> left;
  for (int64_t length : lengths) {
    const auto fits = std::find_if(left.begin(), left.end(), [&](int64_t space) { return space >= length; });
    if (fits != left.end())
      *fits -= length;
    else
      left.push_back(room - length);
  }
  return left.size();
}

}  // namespace

TEST_CASE("images of a natural mix lie evenly over eight vision ranks in every mesh, and not so in reading order") {
  const VisionConfig config = published_encoder();
  const SampleIndex index = natural_mix(1280, 7);
  for (const auto& [dp, sp] : {std::pair{8, 1}, {4, 2}, {2, 4}}) {
    const Mesh mesh = Mesh().set(Axis::kDp, dp).set(Axis::kSp, sp);
    BatchPlanOptions options = of_mesh(config, mesh, 2, 128);
    BatchPlanner balanced(index, everything(index), options);
    options.balance = false;
    BatchPlanner plain(index, everything(index), options);
    double worst = 1, unbalanced = 1;
    for (int64_t step = 1; step <= 10; ++step) {
      const StepPlan plan = balanced.plan(step);
      CHECK(plan.samples == plain.plan(step).samples);
      worst = std::max(worst, step_balance(plan, index, config, mesh, 0).vision_imbalance);
      unbalanced = std::max(unbalanced, step_balance(plain.plan(step), index, config, mesh, 0).vision_imbalance);
    }
    INFO("dp " << dp << " sp " << sp << ": " << worst << ", in reading order " << unbalanced);
    CHECK(worst <= 1.05);
    if (dp > 2) CHECK(unbalanced > 1.05);
  }
}

TEST_CASE("text lanes get about as many tokens, and as many samples when units are counted in samples") {
  const VisionConfig config = published_encoder();
  const SampleIndex index = natural_mix(640, 3);
  const Mesh mesh;
  BatchPlanOptions options = of_mesh(config, mesh, 8, 64);
  options.microbatch_samples = 2;
  BatchPlanner by_samples(index, everything(index), options);
  options.pack_tokens = 4096;
  options.microbatch_samples = 1;
  BatchPlanner packed(index, everything(index), options);
  for (int64_t step = 1; step <= 10; ++step) {
    const StepPlan plan = by_samples.plan(step);
    CHECK(plan.text_units() == 4);
    for (const auto& lane : plan.text)
      for (const TextUnit& unit : lane) CHECK(unit.samples.size() == 2);
    CHECK(step_balance(plan, index, config, mesh, 0).text_imbalance <= 1.15);
    CHECK(step_balance(packed.plan(step), index, config, mesh, 4096).text_imbalance <= 1.15);
  }
}

TEST_CASE("packs are as full as those of first fit, the longest first, over the same window") {
  const VisionConfig config = published_encoder();
  const SampleIndex index = natural_mix(2560, 11);
  const Mesh mesh;
  for (int lanes : {1, 4}) {
    BatchPlanOptions options = of_mesh(config, mesh, lanes, 256);
    options.pack_tokens = 8192;
    BatchPlanner planner(index, everything(index), options);
    int64_t tokens = 0, packs = 0, best = 0;
    for (int64_t step = 1; step <= 10; ++step) {
      const StepPlan plan = planner.plan(step);
      const StepBalance balance = step_balance(plan, index, config, mesh, 8192);
      tokens += plan.tokens;
      packs += balance.sequences;
      CHECK(balance.pack_fill ==
            Approx(static_cast<double>(plan.tokens) / static_cast<double>(balance.sequences * 8192)));
      for (const auto& lane : plan.text) {
        std::vector<int64_t> lengths;
        int64_t used = 0;
        for (const TextUnit& unit : lane) {
          used += unit.sequences;
          for (int32_t s : unit.samples)
            lengths.push_back(index.samples[static_cast<size_t>(plan.samples[static_cast<size_t>(s)])].tokens);
        }
        best += static_cast<int64_t>(first_fit_decreasing(lengths, 8192));
        CHECK(used <= static_cast<int64_t>(lengths.size()));
      }
    }
    const double fill = static_cast<double>(tokens) / static_cast<double>(packs * 8192),
                 ideal = static_cast<double>(tokens) / static_cast<double>(best * 8192);
    INFO("fill " << fill << ", first fit the longest first " << ideal);
    CHECK(fill >= 0.98 * ideal);
    CHECK(fill > 0.8);
  }
}

TEST_CASE("packing gives each sample once in a pass over the data, at every cut and with balance on or off") {
  const VisionConfig config = published_encoder();
  const SampleIndex index = natural_mix(96, 5);
  std::vector<int64_t> expected;
  for (bool balance : {true, false}) {
    for (int lanes : {1, 2, 4}) {
      BatchPlanOptions options = of_mesh(config, Mesh().set(Axis::kDp, lanes), lanes, 16);
      options.balance = balance;
      options.pack_tokens = 3000;
      BatchPlanner planner(index, everything(index), options);
      std::vector<int64_t> order;
      for (int64_t step = 1; step <= 18; ++step) {
        const StepPlan plan = planner.plan(step);
        std::multiset<int32_t> worked;
        for (const auto& lane : plan.text)
          for (const TextUnit& unit : lane) worked.insert(unit.samples.begin(), unit.samples.end());
        CHECK(worked.size() == 16);
        CHECK(std::set<int32_t>(worked.begin(), worked.end()).size() == 16);
        order.insert(order.end(), plan.samples.begin(), plan.samples.end());
      }
      for (int epoch = 0; epoch < 3; ++epoch)
        CHECK(std::set<int64_t>(order.begin() + epoch * 96, order.begin() + (epoch + 1) * 96).size() == 96);
      if (expected.empty()) expected = order;
      CHECK(order == expected);
    }
  }
}

TEST_CASE("sorting by tokens makes the samples of a batch alike, and each still comes once in a pass") {
  const SampleIndex index = natural_mix(100, 9);
  BatchPlanOptions options;
  options.global_batch = 8;
  options.sort_window = 4;
  BatchPlanner sorted(index, everything(index), options);
  options.sort_window = 0;
  BatchPlanner drawn(index, everything(index), options);
  const auto spread_of = [&](const StepPlan& plan) {
    int32_t least = INT32_MAX, most = 0;
    for (int64_t s : plan.samples) {
      least = std::min(least, index.samples[static_cast<size_t>(s)].tokens);
      most = std::max(most, index.samples[static_cast<size_t>(s)].tokens);
    }
    return most - least;
  };
  int64_t alike = 0, mixed = 0;
  std::multiset<int64_t> seen;
  std::vector<int64_t> first_window;
  for (int64_t step = 1; step <= 12; ++step) {
    const StepPlan plan = sorted.plan(step), other = drawn.plan(step);
    alike += spread_of(plan);
    mixed += spread_of(other);
    seen.insert(plan.samples.begin(), plan.samples.end());
    // Sorting moves samples within their window only.
    first_window.insert(first_window.end(), plan.samples.begin(), plan.samples.end());
    if (step % 4 != 0) continue;
    std::vector<int64_t> window;
    for (int64_t k = step - 3; k <= step; ++k) {
      const StepPlan unsorted = drawn.plan(k);
      window.insert(window.end(), unsorted.samples.begin(), unsorted.samples.end());
    }
    std::sort(first_window.begin(), first_window.end());
    std::sort(window.begin(), window.end());
    CHECK(first_window == window);
    first_window.clear();
  }
  CHECK(std::set<int64_t>(seen.begin(), seen.end()).size() == 96);
  CHECK(3 * alike < 2 * mixed);
}
