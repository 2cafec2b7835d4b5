#include "base/data/boundary_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

using namespace troupe;

namespace {

VisionConfig small_vision() {
  VisionConfig c;
  c.hidden = 24;
  c.heads = 12;
  c.out_hidden = 8;
  return c;  // windows of 4 x 4 merged tokens
}

SampleIndex mixed_index() {
  SampleIndex index;
  const std::vector<std::vector<IndexedImage>> images = {
      {{1, 6, 10, 2}}, {}, {{1, 2, 2, 1}, {1, 20, 14, 5}}, {{2, 8, 8, 3}}, {{1, 4, 4, 0}}, {}};
  for (size_t i = 0; i < images.size(); ++i) {
    IndexedSample s;
    s.images = images[i];
    s.tokens = 9;
    for (const IndexedImage& image : s.images) s.tokens += static_cast<int32_t>(image.tokens(2));
    s.supervised = 3;
    index.samples.push_back(s);
  }
  return index;
}

}  // namespace

TEST_CASE("at both ends of the boundary every row of a step has exactly one rank") {
  const SampleIndex index = mixed_index();
  const VisionConfig config = small_vision();
  for (int vdp : {1, 2})
    for (int sp : {1, 2, 3, 4})
      for (int tdp : {1, 2})
        for (int tp : {1, 2, 3})
          for (bool sequence : {false, true}) {
            Mesh vision, text;
            vision.set(Axis::kDp, vdp).set(Axis::kSp, sp);
            text.set(Axis::kDp, tdp).set(Axis::kTp, tp);
            BatchPlanOptions options;
            options.global_batch = 6;
            options.shuffle = false;
            options.text_lanes = tdp;
            options.vision_lanes = vdp;
            BatchPlanner planner(index, {0, 1, 2, 3, 4, 5}, options);
            const StepPlan plan = planner.plan(1);
            std::multiset<int64_t> produced, consumed;
            for (int u = 0; u < plan.vision_units(); ++u)
              for (const RankRows& r : producer_layout(config, plan, u, vision).ranks)
                produced.insert(r.rows.begin(), r.rows.end());
            for (int m = 0; m < plan.text_units(); ++m)
              for (const RankRows& r : consumer_layout(plan, index, 2, m, text, sequence).ranks)
                consumed.insert(r.rows.begin(), r.rows.end());
            std::vector<int64_t> all(static_cast<size_t>(plan.rows));
            std::iota(all.begin(), all.end(), int64_t{0});
            CHECK(std::equal(produced.begin(), produced.end(), all.begin(), all.end()));
            CHECK(std::equal(consumed.begin(), consumed.end(), all.begin(), all.end()));
          }
}

TEST_CASE("consumer rows stand where the samples' image tokens are") {
  const SampleIndex index = mixed_index();
  BatchPlanOptions options;
  options.global_batch = 6;
  options.microbatch_samples = 6;
  options.shuffle = false;
  BatchPlanner planner(index, {0, 1, 2, 3, 4, 5}, options);
  const StepPlan plan = planner.plan(1);
  const ConsumerRows rows = consumer_rows(plan, index, 2, 0, 0);
  CHECK(rows.positions.front() == 2);
  CHECK(rows.positions[15] ==
        index.samples[0].tokens + index.samples[1].tokens + 1);  // second image: one row, first of sample 2
  CHECK(rows.tokens == plan.tokens);
  CHECK(std::is_sorted(rows.positions.begin(), rows.positions.end()));
}

TEST_CASE("with tensor-sequence parallelism a rank receives the rows of its own cut of the sequence") {
  ConsumerRows rows;
  rows.rows = {0, 1, 2, 3};
  rows.positions = {1, 4, 5, 9};
  rows.tokens = 10;  // cuts at 0, 4, 8, 12
  CHECK(consumer_range(rows, 3, 0, true).last == 1);
  CHECK(consumer_range(rows, 3, 1, true).first == 1);
  CHECK(consumer_range(rows, 3, 1, true).last == 3);
  CHECK(consumer_range(rows, 3, 2, true).last == 4);
}

TEST_CASE("the digest of a message changes with samples, rows and order") {
  StepPlan a, b;
  a.samples = {1, 2};
  b.samples = {2, 1};
  CHECK(rows_digest(a, {0, 1}) == rows_digest(a, {0, 1}));
  CHECK(rows_digest(a, {0, 1}) != rows_digest(a, {1, 0}));
  CHECK(rows_digest(a, {0, 1}) != rows_digest(b, {0, 1}));
}
