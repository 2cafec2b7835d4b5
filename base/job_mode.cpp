#include "base/job_mode.h"

namespace troupe {
namespace {

constexpr JobMode kModes[] = {JobMode::kTrain, JobMode::kEval, JobMode::kCalls, JobMode::kDispatch,
                              JobMode::kNoopCalls};

}  // namespace

const char* job_mode_name(JobMode mode) {
  switch (mode) {
    case JobMode::kTrain:
      return "train";
    case JobMode::kEval:
      return "eval";
    case JobMode::kCalls:
      return "calls";
    case JobMode::kDispatch:
      return "dispatch";
    case JobMode::kNoopCalls:
      return "calls-noop";
  }
  return "train";
}

Result<JobMode> parse_job_mode(const std::string& name) {
  for (const JobMode mode : kModes)
    if (name == job_mode_name(mode)) return mode;
  return invalid_argument("mode '" + name + "'; valid: train, eval");
}

}  // namespace troupe
