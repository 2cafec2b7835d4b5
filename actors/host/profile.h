#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/host/actor.h"

/// The part of a host that traces the steps that `profile` names and writes RUN/trace/steps-FIRST-LAST/slot-N.json.
namespace troupe {

/// Owner thread only.
class Profile {
 public:
  /// Refers to both.
  Profile(const JobContext& job, const std::vector<std::unique_ptr<Actor>>& actors);
  /// Before a step: starts the trace at the first one, with the clock measured.
  void before(int64_t step);
  /// Behind a step: writes the file behind the last one. A trace that cannot be written is an event, not the end of the
  /// job.
  void after(int64_t step);

 private:
  Status write();

  const JobContext& job_;
  const std::vector<std::unique_ptr<Actor>>& actors_;
  bool wanted_ = false;
  ClockOffset clock_;
};

}  // namespace troupe
