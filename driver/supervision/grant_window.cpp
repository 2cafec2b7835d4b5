#include "driver/supervision/grant_window.h"

#include <algorithm>

namespace troupe::driver {
namespace {

/// A pace over less than this says little: reports come in batches.
constexpr std::chrono::milliseconds kLeastMeasure{20};
constexpr int64_t kLargestWindow = 1 << 16;

}  // namespace

GrantWindow::GrantWindow(int hosts, int64_t least, int64_t first_step, std::chrono::milliseconds span)
    : least_(least),
      window_(least),
      span_(span),
      prepared_(static_cast<size_t>(hosts), first_step - 1),
      done_(static_cast<size_t>(hosts), first_step - 1) {
  state_.run_through = first_step - 1;
}

int64_t GrantWindow::done_by_all() const { return *std::min_element(done_.begin(), done_.end()); }
int64_t GrantWindow::prepared_by_all() const { return *std::min_element(prepared_.begin(), prepared_.end()); }

std::optional<GrantState> GrantWindow::prepared(int host, int64_t step, const StepSamples& bad) {
  int64_t& mine = prepared_[static_cast<size_t>(host)];
  for (const auto& [of_step, samples] : bad)
    if (of_step > mine) bad_[of_step].insert(samples.begin(), samples.end());  // else it may run already
  mine = std::max(mine, step);
  return advance();
}

std::optional<GrantState> GrantWindow::done(int host, int64_t step, Time now) {
  int64_t& mine = done_[static_cast<size_t>(host)];
  mine = std::max(mine, step);
  measure(now);
  return advance();
}

std::optional<GrantState> GrantWindow::stop(bool save) {
  if (state_.stop_after >= 0) return std::nullopt;
  state_.stop_after = state_.run_through + 1;
  if (save) state_.save_at = state_.stop_after;
  if (auto grown = advance()) return grown;
  return state_;
}

void GrantWindow::measure(Time now) {
  const int64_t done = done_by_all();
  if (!measured_since_) {
    measured_since_ = now;
    measured_from_ = done;
    return;
  }
  const auto elapsed = now - *measured_since_;
  if (elapsed < kLeastMeasure || done == measured_from_) return;
  const double steps_in_span = static_cast<double>(done - measured_from_) *
                               std::chrono::duration<double>(span_).count() /
                               std::chrono::duration<double>(elapsed).count();
  // It grows by doubling only: one quick start is no pace.
  window_ = std::clamp(static_cast<int64_t>(steps_in_span), least_, std::min(kLargestWindow, 2 * window_));
  if (elapsed < span_) return;
  measured_since_ = now;
  measured_from_ = done;
}

std::optional<GrantState> GrantWindow::advance() {
  int64_t through = std::min(prepared_by_all(), done_by_all() + window_);
  if (state_.stop_after >= 0) through = std::min(through, state_.stop_after);
  if (through <= state_.run_through) return std::nullopt;
  // The host that is furthest has this much left. It says so before it waits, so nothing is held back for long.
  const int64_t left = state_.run_through - *std::max_element(done_.begin(), done_.end());
  const bool worthwhile =
      through - state_.run_through >= window_ / 4 || left < std::max(least_, window_ / 2) || state_.stop_after >= 0;
  if (!worthwhile) return std::nullopt;
  state_.run_through = through;
  bad_.erase(bad_.begin(), bad_.upper_bound(done_by_all()));
  state_.left_out.clear();
  for (auto at = bad_.begin(); at != bad_.upper_bound(through); ++at)
    state_.left_out[at->first] = {at->second.begin(), at->second.end()};
  return state_;
}

}  // namespace troupe::driver
