#include "base/data/step_balance.h"

#include <algorithm>
#include <numeric>

#include "base/data/boundary_layout.h"

namespace troupe {
namespace {

double most_over_mean(const std::vector<double>& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return sum > 0 ? *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / sum : 1;
}

std::vector<double> vision_loads(const StepPlan& plan, const VisionConfig& config, const Mesh& vision) {
  const int dp = vision.size(Axis::kDp), sp = vision.size(Axis::kSp);
  const double weight = frame_cost(config), block = static_cast<double>(config.merge_size * config.merge_size);
  std::vector<double> loads(static_cast<size_t>(vision.ranks()), 0);
  for (int lane = 0; lane < dp; ++lane) {
    const int first = vision.with(0, Axis::kDp, lane);
    for (int unit = 0; unit < plan.vision_units(); ++unit) {
      const VisionUnitLayout layout = vision_unit_layout(config, plan, lane, unit, sp);
      double shared = 0;
      for (const IndexedImage& image : layout.images)
        shared += image_cost(image, weight) - static_cast<double>(image.patches());
      const auto rows = merged_rows_of_ranks(config, layout);
      for (int r = 0; r < sp; ++r)
        loads[static_cast<size_t>(vision.with(first, Axis::kSp, r))] +=
            static_cast<double>(rows[static_cast<size_t>(r)].size()) * block + shared / sp;
    }
  }
  return loads;
}

}  // namespace

StepBalance step_balance(const StepPlan& plan, const SampleIndex& index, const VisionConfig& config, const Mesh& vision,
                         int64_t pack_tokens) {
  StepBalance balance;
  std::vector<double> lanes;
  for (const auto& lane : plan.text) {
    int64_t tokens = 0;
    for (const TextUnit& unit : lane) {
      balance.sequences += unit.sequences;
      for (int32_t s : unit.samples)
        tokens += index.samples[static_cast<size_t>(plan.samples[static_cast<size_t>(s)])].tokens;
    }
    lanes.push_back(static_cast<double>(tokens));
  }
  balance.text_imbalance = most_over_mean(lanes);
  balance.vision_imbalance = most_over_mean(vision_loads(plan, config, vision));
  if (pack_tokens > 0 && balance.sequences > 0)
    balance.pack_fill =
        static_cast<double>(plan.tokens) / (static_cast<double>(balance.sequences) * static_cast<double>(pack_tokens));
  return balance;
}

}  // namespace troupe
