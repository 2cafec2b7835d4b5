#pragma once

#include <cstdint>
#include <vector>

#include "base/program/timeline.h"
#include "base/trace/host_trace.h"
#include "transport/channel/delayed_channel.h"

/// A job whose components sleep instead of computing: real programs, instruction loop and UCX channels, one host (a
/// thread) for each group. Shows what a schedule costs, for any number of groups. What crosses are integers that depend
/// on everything that came before, so that a message in the wrong place shows in the sums.
namespace troupe {

struct BusyJob {
  Program program;
  StepShape shape;
  WorkSeconds seconds;  // what a unit's forward or backward takes
  int64_t message_bytes = 65536;
  int steps = 1;
  MessageDelays delays;
};

struct BusyOutcome {
  std::vector<double> step_seconds;        // [step], on the host that took longest
  std::vector<std::vector<int64_t>> sums;  // [step][group]
  std::vector<HostTrace> traces;           // [group]
};

/// The sums that a job must come to, by going through the units one by one.
std::vector<int64_t> expected_sums(const BusyJob& job);
/// An error of a host is the job's. Waits have a deadline of 60 s.
Result<BusyOutcome> run_busy_job(const BusyJob& job);

}  // namespace troupe
