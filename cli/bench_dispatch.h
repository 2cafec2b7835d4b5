#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

/// `troupe bench dispatch`: what driving a step costs when the step itself is nothing.
namespace troupe::cli {

/// Processor time, user and system, of RUSAGE_SELF, RUSAGE_THREAD, ...
double processor_seconds(int who);

/// Returns the exit code; `arguments` are those behind the bench's name.
int bench_dispatch_command(const std::string& actor, std::vector<std::string> arguments);

/// A job of `hosts` hosts that exist only as answers inside this process: the real driver loop, state machines, journal
/// and run folder, with neither gRPC nor processes. Returns {"hosts", "driver_us_per_step"}: processor time of
/// everything but the answering thread.
Result<nlohmann::ordered_json> bench_simulated_hosts(int hosts, int64_t steps, const std::string& folder);

}  // namespace troupe::cli
