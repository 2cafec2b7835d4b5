#include "driver/supervision/grant_window.h"

#include <algorithm>

namespace troupe::driver {

GrantWindow::GrantWindow(int hosts, int64_t window, int64_t first_step)
    : window_(window),
      prepared_(static_cast<size_t>(hosts), first_step - 1),
      done_(static_cast<size_t>(hosts), first_step - 1) {
  state_.run_through = first_step - 1;
}

int64_t GrantWindow::done_by_all() const { return *std::min_element(done_.begin(), done_.end()); }
int64_t GrantWindow::prepared_by_all() const { return *std::min_element(prepared_.begin(), prepared_.end()); }

std::optional<GrantState> GrantWindow::prepared(int host, int64_t step) {
  int64_t& mine = prepared_[static_cast<size_t>(host)];
  mine = std::max(mine, step);
  return advance();
}

std::optional<GrantState> GrantWindow::done(int host, int64_t step) {
  int64_t& mine = done_[static_cast<size_t>(host)];
  mine = std::max(mine, step);
  return advance();
}

std::optional<GrantState> GrantWindow::stop(bool save) {
  if (state_.stop_after >= 0) return std::nullopt;
  state_.stop_after = state_.run_through + 1;
  if (save) state_.save_at = state_.stop_after;
  if (auto grown = advance()) return grown;
  return state_;
}

std::optional<GrantState> GrantWindow::advance() {
  int64_t through = std::min(prepared_by_all(), done_by_all() + window_);
  if (state_.stop_after >= 0) through = std::min(through, state_.stop_after);
  if (through <= state_.run_through) return std::nullopt;
  state_.run_through = through;
  return state_;
}

}  // namespace troupe::driver
