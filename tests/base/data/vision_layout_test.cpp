#include "base/data/vision_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

using namespace troupe;

namespace {

VisionConfig published() {
  VisionConfig v;  // patches of 14 pixels, windows of 112, merge 2: windows of 4 x 4 merged tokens
  v.hidden = 32;
  v.heads = 2;
  return v;
}

using Rows = std::vector<int64_t>;

VisionUnitLayout cut(const std::vector<IndexedImage>& images, int sp) {
  return {images, cut_windows(published(), images, sp)};
}

}  // namespace

TEST_CASE("windows are read in raster order, and so are the tokens inside them") {
  // 3 x 5 merged tokens: a window of 3 x 4 and one of 3 x 1.
  const VisionUnitLayout layout{{{1, 6, 10, 0}}, {0, 1, 2}};
  const auto rows = merged_rows_of_ranks(published(), layout);
  CHECK(rows[0] == Rows{0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13});
  CHECK(rows[1] == Rows{4, 9, 14});
}

TEST_CASE("patches of a merged token stay together, in processor order") {
  const VisionUnitLayout layout{{{1, 6, 10, 0}}, {0, 1, 2}};
  CHECK(local_patches(published(), layout, 1) == Rows{16, 17, 18, 19, 36, 37, 38, 39, 56, 57, 58, 59});
}

TEST_CASE("frames and images follow one another") {
  const VisionUnitLayout layout{{{2, 4, 4, 0}, {1, 2, 2, 0}}, {0, 3}};
  CHECK(merged_rows_of_ranks(published(), layout)[0] == Rows{0, 1, 2, 3, 4, 5, 6, 7, 8});
  const VisionRankPlan plan = plan_vision_rank(published(), layout, 0);
  CHECK(plan.frame_starts == Rows{0, 16, 32, 36});
  CHECK(plan.window_starts == Rows{0, 16, 32, 36});
  CHECK(plan.rank_rows == Rows{36});
  CHECK(std::vector<int32_t>(plan.rows.begin(), plan.rows.begin() + 8) == std::vector<int32_t>{0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(std::vector<int32_t>(plan.columns.begin(), plan.columns.begin() + 8) ==
        std::vector<int32_t>{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(plan.rows[32] == 0);
}

TEST_CASE("fewer windows than ranks leave ranks without rows") {
  const VisionUnitLayout layout = cut({{1, 2, 2, 0}}, 3);
  const auto rows = merged_rows_of_ranks(published(), layout);
  CHECK(rows[0].size() + rows[1].size() + rows[2].size() == 1);
  CHECK(std::ranges::count_if(rows, [](const Rows& r) { return r.empty(); }) == 2);
}

TEST_CASE("no images: no windows on any rank") {
  CHECK(cut_windows(published(), {}, 3) == Rows{0, 0, 0, 0});
  CHECK(merged_rows_of_ranks(published(), cut({}, 3)) == std::vector<Rows>(3));
  CHECK(plan_vision_rank(published(), cut({}, 2), 1).frame_starts == Rows{0});
}

TEST_CASE("every row has one holder, cuts are ordered and no rank holds more than its share and a window") {
  std::mt19937 random(5);
  const VisionConfig config = published();
  for (int round = 0; round < 300; ++round) {
    std::vector<IndexedImage> images(random() % 5);
    for (IndexedImage& image : images) {
      image = {static_cast<int32_t>(1 + random() % 3), static_cast<int32_t>(2 + 2 * (random() % 20)),
               static_cast<int32_t>(2 + 2 * (random() % 20)), 0};
    }
    const int sp = static_cast<int>(1 + random() % 9);
    const VisionUnitLayout layout = cut(images, sp);
    REQUIRE(std::ranges::is_sorted(layout.window_cuts));
    int64_t total = 0;
    for (const IndexedImage& image : images) total += image.tokens(config.merge_size);
    std::vector<int64_t> seen;
    const auto rows = merged_rows_of_ranks(config, layout);
    for (int rank = 0; rank < sp; ++rank) {
      const Rows& held = rows[static_cast<size_t>(rank)];
      REQUIRE(static_cast<int64_t>(held.size()) <= (total + sp - 1) / sp + 16);
      seen.insert(seen.end(), held.begin(), held.end());
      const VisionRankPlan plan = plan_vision_rank(config, layout, rank);
      const Rows patches = local_patches(config, layout, rank);
      REQUIRE(patches.size() == held.size() * 4);
      REQUIRE(plan.rank_rows[static_cast<size_t>(rank)] == static_cast<int64_t>(patches.size()));
      REQUIRE(plan.window_starts.back() == static_cast<int64_t>(patches.size()));
      REQUIRE(plan.rows.size() == patches.size());
      REQUIRE(std::accumulate(plan.rank_rows.begin(), plan.rank_rows.end(), int64_t{0}) == plan.frame_starts.back());
    }
    std::ranges::sort(seen);
    std::vector<int64_t> all(static_cast<size_t>(total));
    std::iota(all.begin(), all.end(), 0);
    REQUIRE(seen == all);
  }
}
