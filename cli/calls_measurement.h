#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

/// What `troupe bench calls` measures, in the process of a loop.
namespace troupe::cli {

/// Where servers of plain gRPC listen (cli/rpc/raw_echo.h), as many as the decoder's group has ranks.
struct RawServers {
  std::vector<std::string> unary, stream;
};

/// Times calls on the hosts of the job at `driver`, in turns with plain gRPC, then finishes the job. `calls` of each
/// kind; the ratios are of medians, to the quicker kind of plain gRPC.
Result<nlohmann::ordered_json> measure_calls(const std::string& driver, const std::string& job,
                                             const RawServers& servers, int calls);

}  // namespace troupe::cli
