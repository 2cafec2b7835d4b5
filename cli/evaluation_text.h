#pragma once

#include <string>

namespace troupe::cli {

/// What `troupe eval` prints of a finished job's result: every figure on a line, then the samples that were asked for
/// (question, expected, predicted). With `json` the hosts' result itself.
std::string evaluation_text(const std::string& result_json, bool json);

}  // namespace troupe::cli
