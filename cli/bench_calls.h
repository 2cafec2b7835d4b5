#pragma once

#include <string>
#include <vector>

/// `troupe bench calls`: what a direct call costs, beside plain gRPC.
namespace troupe::cli {

/// Returns the exit code; `arguments` are those behind the bench's name. To be called before any thread is started.
int bench_calls_command(const std::string& actor, std::vector<std::string> arguments);

}  // namespace troupe::cli
