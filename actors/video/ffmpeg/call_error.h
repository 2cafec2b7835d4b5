#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace troupe::ffmpeg {

/// FFmpeg gets no more than this at once: a file of a kilobyte may state a table of gigabytes.
inline constexpr size_t kMaxAllocationBytes = size_t{1} << 29;

/// The error of a call that gave `result` (below 0): `what` and FFmpeg's words. ResourceExhausted when memory was
/// short, else `code`.
Error call_error(int result, ErrorCode code, const std::string& what);
/// Of a call that gave no object.
Error out_of_memory(const std::string& what);

}  // namespace troupe::ffmpeg
