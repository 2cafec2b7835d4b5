#pragma once

#include <string>

#include "base/result.h"

/// What a job's hosts do. The planner says it, the driver and the hosts go by it.
namespace troupe {

enum class JobMode {
  kTrain,
  kEval,
  kCalls,      // a loop of one's own drives the hosts, by calls
  kDispatch,   // benches: the recorded loop, with actors that do nothing
  kNoopCalls,  // benches: calls, with actors that do nothing
};

/// "train", "eval", "calls", "dispatch", "calls-noop".
const char* job_mode_name(JobMode mode);
/// InvalidArgument for anything else.
Result<JobMode> parse_job_mode(const std::string& name);

/// Whether the job's actors do nothing: what is measured is all that is around them.
inline bool is_noop(JobMode mode) { return mode == JobMode::kDispatch || mode == JobMode::kNoopCalls; }
/// Whether the hosts wait for calls instead of running the recorded loop.
inline bool serves_calls(JobMode mode) { return mode == JobMode::kCalls || mode == JobMode::kNoopCalls; }
/// Whether weights change.
inline bool trains(JobMode mode) { return mode == JobMode::kTrain || mode == JobMode::kCalls; }

}  // namespace troupe
