#pragma once

#include <string>

#include "base/result.h"

/// The exit codes that scripts rely on.
namespace troupe::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitRefused = 2;
inline constexpr int kExitNoDriver = 3;
inline constexpr int kExitUnknown = 4;    // the driver was lost while waiting
inline constexpr int kExitSaved = 75;     // stopped with a checkpoint, resumable
inline constexpr int kExitStopped = 130;  // stopped by the user

/// Of a request that did not get as far as a job.
inline int exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable:
      return kExitNoDriver;
    case ErrorCode::kInternal:
      return kExitFailed;
    default:
      return kExitRefused;
  }
}

/// Prints the error to standard error for a person and, `as_json`, to standard output for a program
/// (base/error_json.h); returns `exit_code_of` it.
int report(const Error& error, bool as_json = false);

}  // namespace troupe::cli
