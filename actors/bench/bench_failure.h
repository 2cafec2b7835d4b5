#pragma once

#include <cstdio>
#include <string>

#include "base/error_json.h"
#include "base/printable_text.h"
#include "base/result.h"

/// How a bench that troupe-actor carries out ends without a result.
namespace troupe {

/// Says on standard error why bench `name` has no result, with `as_json` on standard output too. Returns the exit code:
/// 2 where what was asked for, a file that it names included, is to blame; 130 where it was interrupted; 1 where the
/// measurement failed.
inline int bench_failure(const std::string& name, const Error& error, bool as_json) {
  const bool refused = error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound ||
                       error.code == ErrorCode::kDataLoss || error.code == ErrorCode::kUnimplemented ||
                       error.code == ErrorCode::kFailedPrecondition;
  const int exit_code = refused ? 2 : error.code == ErrorCode::kCancelled ? 130 : 1;
  std::fprintf(stderr, "troupe bench %s: %s\n", name.c_str(),
               printable(error.to_string(), /*keep_lines=*/true).c_str());
  if (as_json) std::printf("%s\n", error_json(error, exit_code).c_str());
  return exit_code;
}

}  // namespace troupe
