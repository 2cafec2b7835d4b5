#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// Which steps the hosts of a job may run. Pure state machine; owner loop only.
namespace troupe::driver {

struct GrantState {
  int64_t run_through = 0;
  int64_t stop_after = -1;
  int64_t save_at = -1;
  bool operator==(const GrantState&) const = default;
};

/// run_through = min(prepared by every host, done by every host + window), never falls. A stop is set at the first step that no grant
/// covers yet, so that every host learns of it before it runs that step.
class GrantWindow {
 public:
  GrantWindow(int hosts, int64_t window, int64_t first_step);
  /// Each returns the grant to publish when it changed.
  std::optional<GrantState> prepared(int host, int64_t step);
  std::optional<GrantState> done(int host, int64_t step);
  /// Ends the job in order; with `save` a checkpoint is written after the last step. A second request changes nothing.
  std::optional<GrantState> stop(bool save);
  const GrantState& state() const { return state_; }
  /// The step that every host has finished.
  int64_t done_by_all() const;
  int64_t prepared_by_all() const;
  int64_t done_by(int host) const { return done_[static_cast<size_t>(host)]; }

 private:
  std::optional<GrantState> advance();

  int64_t window_;
  std::vector<int64_t> prepared_, done_;
  GrantState state_;
};

}  // namespace troupe::driver
