#include "base/data/boundary_layout.h"

#include <xxhash.h>

#include <algorithm>

namespace troupe {

VisionUnitLayout vision_unit_layout(const VisionConfig& config, const StepPlan& plan, int lane, int unit, int sp) {
  VisionUnitLayout layout;
  for (int32_t i : plan.vision[static_cast<size_t>(lane)][static_cast<size_t>(unit)].images)
    layout.images.push_back(plan.images[static_cast<size_t>(i)].grid);
  layout.window_cuts = cut_windows(config, layout.images, sp);
  return layout;
}

RowLayout producer_layout(const VisionConfig& config, const StepPlan& plan, int unit, const Mesh& vision) {
  RowLayout result;
  result.ranks.resize(static_cast<size_t>(vision.ranks()));
  const int sp = vision.size(Axis::kSp);
  for (int lane = 0; lane < vision.size(Axis::kDp); ++lane) {
    const VisionUnitLayout layout = vision_unit_layout(config, plan, lane, unit, sp);
    // Rows of the lane's unit in reading order -> row ids of the step.
    std::vector<int64_t> ids;
    for (int32_t i : plan.vision[static_cast<size_t>(lane)][static_cast<size_t>(unit)].images) {
      const StepImage& image = plan.images[static_cast<size_t>(i)];
      for (int64_t r = 0; r < image.grid.tokens(config.merge_size); ++r) ids.push_back(image.first_row + r);
    }
    const auto by_rank = merged_rows_of_ranks(config, layout);
    for (int s = 0; s < sp; ++s) {
      const int rank = vision.with(vision.with(0, Axis::kDp, lane), Axis::kSp, s);
      for (int64_t row : by_rank[static_cast<size_t>(s)])
        result.ranks[static_cast<size_t>(rank)].rows.push_back(ids[static_cast<size_t>(row)]);
    }
  }
  return result;
}

ConsumerRows consumer_rows(const StepPlan& plan, const SampleIndex& index, int64_t merge, int lane, int unit) {
  ConsumerRows result;
  std::vector<std::vector<const StepImage*>> of_sample(plan.samples.size());
  for (const StepImage& image : plan.images) of_sample[static_cast<size_t>(image.sample)].push_back(&image);
  for (int32_t s : plan.text[static_cast<size_t>(lane)][static_cast<size_t>(unit)].samples) {
    for (const StepImage* image : of_sample[static_cast<size_t>(s)])
      for (int64_t r = 0; r < image->grid.tokens(merge); ++r) {
        result.rows.push_back(image->first_row + r);
        result.positions.push_back(result.tokens + image->grid.token_offset + r);
      }
    result.tokens += index.samples[static_cast<size_t>(plan.samples[static_cast<size_t>(s)])].tokens;
  }
  return result;
}

RowRange consumer_range(const ConsumerRows& rows, int tp, int tp_rank, bool tp_sequence) {
  const auto total = static_cast<int64_t>(rows.rows.size());
  if (!tp_sequence) return {cut_begin(total, tp, tp_rank), cut_begin(total, tp, tp_rank + 1)};
  const int64_t piece = (rows.tokens + tp - 1) / tp;  // the sequence padded to a multiple of tp
  const auto at = [&](int64_t position) {
    return static_cast<int64_t>(std::lower_bound(rows.positions.begin(), rows.positions.end(), position) -
                                rows.positions.begin());
  };
  return {at(piece * tp_rank), at(piece * (tp_rank + 1))};
}

RowLayout consumer_layout(const StepPlan& plan, const SampleIndex& index, int64_t merge, int unit, const Mesh& text,
                          bool tp_sequence) {
  RowLayout result;
  result.ranks.resize(static_cast<size_t>(text.ranks()));
  const int tp = text.size(Axis::kTp);
  for (int lane = 0; lane < text.size(Axis::kDp); ++lane) {
    const ConsumerRows rows = consumer_rows(plan, index, merge, lane, unit);
    for (int t = 0; t < tp; ++t) {
      const RowRange range = consumer_range(rows, tp, t, tp_sequence);
      const int rank = text.with(text.with(0, Axis::kDp, lane), Axis::kTp, t);
      result.ranks[static_cast<size_t>(rank)].rows.assign(rows.rows.begin() + range.first,
                                                          rows.rows.begin() + range.last);
    }
  }
  return result;
}

uint64_t rows_digest(const StepPlan& plan, const std::vector<int64_t>& row_ids) {
  const uint64_t samples = XXH3_64bits(plan.samples.data(), plan.samples.size() * sizeof(int64_t));
  return XXH3_64bits_withSeed(row_ids.data(), row_ids.size() * sizeof(int64_t), samples);
}

}  // namespace troupe
