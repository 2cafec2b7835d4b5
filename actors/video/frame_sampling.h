#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Which frames of a video file are taken. The published video processor's meaning of `fps`, `min_frames` and
/// `max_frames`.
struct FrameSampling {
  double fps = 2;  // frames a second
  int64_t min_frames = 4, max_frames = 768;
};

struct SampledFrames {
  std::vector<int64_t> numbers;  // ascending, from 0, below the number of frames
  double fps = 0;                // of what is taken
};

/// Evenly spread frames of a file of `frames` at `native_fps`, as many as its length asks for, rounded down to a
/// multiple of `temporal_patch`. InvalidArgument with the reason when it has fewer than that. Source:
/// Qwen2VLVideoProcessor of transformers 5.24.0, frame for frame, its fp32 rounding included; where that names a frame
/// behind the last one, it is left out.
Result<SampledFrames> sample_frames(int64_t frames, double native_fps, const FrameSampling& sampling,
                                    int64_t temporal_patch);

}  // namespace troupe
