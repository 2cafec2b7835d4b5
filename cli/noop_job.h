#pragma once

#include <string>

#include "cli/planning.h"

/// A job whose actors do nothing, for benches of what is around them.
namespace troupe::cli {

/// `mode`: kDispatch or kNoopCalls. Writes a model of shapes small enough to cost nothing into `folder`; the run
/// folder is below it. `vision` and `text` hosts, disjoint, one thread each; `text` a power of two up to 64.
Result<PlannedRun> plan_noop_job(JobMode mode, const std::string& folder, int vision, int text, int64_t steps);

}  // namespace troupe::cli
