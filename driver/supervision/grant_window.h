#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

/// Which steps the hosts of a job may run. Pure state machine; owner loop only.
namespace troupe::driver {

/// Step -> dataset samples of its batch, ascending.
using StepSamples = std::map<int64_t, std::vector<int64_t>>;

struct GrantState {
  int64_t run_through = 0;
  int64_t stop_after = -1;
  int64_t save_at = -1;
  StepSamples left_out = {};  // what some host cannot read of the granted steps that not every host has done
  bool operator==(const GrantState&) const = default;
};

/// run_through = min(prepared by every host, done by every host + window), never falls. The window is what the hosts do
/// in `span` at the pace seen so far, so that they never wait for the driver and a stop is never further away than
/// that. A stop is set at the first step that no grant covers yet, so that every host learns of it before it runs that
/// step. What a host cannot read of a step stands in every grant that covers the step, whole, since all hosts have
/// prepared it by then. Small advances are held back while the hosts have at least half a window left.
class GrantWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `least`: steps of the smallest window; it is in force until a pace is known.
  GrantWindow(int hosts, int64_t least, int64_t first_step,
              std::chrono::milliseconds span = std::chrono::milliseconds(1000));
  /// Each returns the grant to publish when there is one.
  /// `bad`: what the host cannot read, of steps that it had not prepared before.
  std::optional<GrantState> prepared(int host, int64_t step, const StepSamples& bad = {});
  std::optional<GrantState> done(int host, int64_t step, Time now);
  /// Ends the job in order; with `save` a checkpoint is written after the last step. A second request changes nothing.
  std::optional<GrantState> stop(bool save);
  const GrantState& state() const { return state_; }
  /// The step that every host has finished.
  int64_t done_by_all() const;
  int64_t prepared_by_all() const;
  int64_t done_by(int host) const { return done_[static_cast<size_t>(host)]; }
  int64_t window() const { return window_; }

 private:
  std::optional<GrantState> advance();
  void measure(Time now);

  int64_t least_, window_;
  std::chrono::milliseconds span_;
  std::vector<int64_t> prepared_, done_;
  std::map<int64_t, std::set<int64_t>> bad_;  // of steps beyond done_by_all()
  std::optional<Time> measured_since_;        // the pace: steps done since then
  int64_t measured_from_ = 0;
  GrantState state_;
};

}  // namespace troupe::driver
