#pragma once

#include <cstdio>

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

/// Prints the error for a person and returns `exit_code_of` it.
inline int exit_code_of(const Error& error);
inline int report(const Error& error) {
  std::fprintf(stderr, "troupe: %s\n", error.to_string().c_str());
  return exit_code_of(error);
}

/// Of a request that did not get as far as a job.
inline int exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable: return kExitNoDriver;
    case ErrorCode::kInternal: return kExitFailed;
    default: return kExitRefused;
  }
}

}  // namespace troupe::cli
