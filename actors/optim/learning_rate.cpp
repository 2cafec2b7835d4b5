#include <cmath>

#include "actors/optim/optimizer.h"

namespace troupe {

double learning_rate(const ScheduleSpec& schedule, double peak, int64_t step, int64_t steps) {
  constexpr double kPi = 3.14159265358979323846;
  const auto from_ratio = static_cast<int64_t>(std::ceil(schedule.warmup_ratio * static_cast<double>(steps)));
  const int64_t warmup = schedule.warmup_steps.value_or(from_ratio);
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (schedule.type == ScheduleKind::kConstant || steps <= warmup) return peak;
  const double way = std::fmin(1.0, static_cast<double>(step - warmup) / static_cast<double>(steps - warmup));
  const double left = schedule.type == ScheduleKind::kCosine ? 0.5 * (1.0 + std::cos(kPi * way)) : 1.0 - way;
  return peak * (schedule.min_ratio + (1.0 - schedule.min_ratio) * left);
}

}  // namespace troupe
