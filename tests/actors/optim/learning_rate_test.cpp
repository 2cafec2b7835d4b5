#include <catch2/catch.hpp>

#include "actors/optim/optimizer.h"

using namespace troupe;

namespace {

ScheduleSpec schedule_of(ScheduleKind kind, int64_t warmup, double min_ratio) {
  ScheduleSpec s;
  s.type = kind;
  s.warmup_steps = warmup;
  s.min_ratio = min_ratio;
  return s;
}

}  // namespace

TEST_CASE("warmup rises in equal steps from the first to the peak") {
  const ScheduleSpec s = schedule_of(ScheduleKind::kCosine, 4, 0.1);
  CHECK(learning_rate(s, 8.0, 1, 20) == Approx(2.0));
  CHECK(learning_rate(s, 8.0, 3, 20) == Approx(6.0));
  CHECK(learning_rate(s, 8.0, 4, 20) == Approx(8.0));
}

TEST_CASE("decays go from the peak to the least rate over the steps after warmup") {
  const ScheduleSpec cosine = schedule_of(ScheduleKind::kCosine, 4, 0.1),
                     linear = schedule_of(ScheduleKind::kLinear, 4, 0.1);
  CHECK(learning_rate(cosine, 1.0, 20, 20) == Approx(0.1));
  CHECK(learning_rate(cosine, 1.0, 12, 20) == Approx(0.55));
  CHECK(learning_rate(cosine, 1.0, 8, 20) == Approx(0.1 + 0.9 * 0.8535533906));
  CHECK(learning_rate(linear, 1.0, 20, 20) == Approx(0.1));
  CHECK(learning_rate(linear, 1.0, 8, 20) == Approx(0.1 + 0.9 * 0.75));
  CHECK(learning_rate(schedule_of(ScheduleKind::kConstant, 4, 0.1), 1.0, 20, 20) == Approx(1.0));
}

TEST_CASE("C10: the rate runs over all steps of all passes, not over one pass") {
  const ScheduleSpec s = schedule_of(ScheduleKind::kCosine, 0, 0);
  for (int64_t step = 2; step <= 20; ++step)
    CHECK(learning_rate(s, 1.0, step, 20) < learning_rate(s, 1.0, step - 1, 20));
  CHECK(learning_rate(s, 1.0, 10, 20) == Approx(0.5));
  CHECK(learning_rate(s, 1.0, 20, 20) == Approx(0.0).margin(1e-12));
}

TEST_CASE("a warmup ratio counts in whole steps, rounded up") {
  ScheduleSpec s;
  s.type = ScheduleKind::kConstant;
  s.warmup_ratio = 0.03;
  CHECK(learning_rate(s, 1.0, 1, 50) == Approx(0.5));
  CHECK(learning_rate(s, 1.0, 2, 50) == Approx(1.0));
}

TEST_CASE("a schedule that is all warmup ends at the peak, and steps behind the end stay at the least rate") {
  CHECK(learning_rate(schedule_of(ScheduleKind::kCosine, 5, 0.0), 1.0, 5, 5) == Approx(1.0));
  CHECK(learning_rate(schedule_of(ScheduleKind::kLinear, 0, 0.2), 1.0, 9, 5) == Approx(0.2));
}
