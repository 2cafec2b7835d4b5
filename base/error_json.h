#pragma once

#include <string>

#include "base/result.h"

namespace troupe {

/// What `--json` answers instead of what was asked for: {"error": {"code", "message", "exit_code"}} on one line,
/// without its newline.
std::string error_json(const Error& error, int exit_code);

}  // namespace troupe
