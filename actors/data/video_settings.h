#pragma once

#include <optional>

#include "actors/video/frame_sampling.h"
#include "base/config/job_spec.h"
#include "base/model/model_config.h"
#include "base/model/processor_config.h"
#include "base/result.h"

namespace troupe {

/// How videos of a job are read: the spec's `data.video`, else the model folder's video processor file, else the
/// published processor's defaults.
struct VideoSettings {
  FrameSampling sampling;                         // of files
  double frame_list_fps = 24;                     // of a list of frames whose record does not say
  int64_t min_pixels = 0, max_pixels = 0;         // of a frame after scaling
  std::optional<int64_t> most_pixels_altogether;  // of frames whose share bounds max_pixels
  PixelValues values;
  int64_t patch_size = 14, merge_size = 2, temporal_patch_size = 2;

  /// The greatest area of a frame when there are so many of them.
  int64_t max_pixels_of(int64_t frames) const;
};

/// InvalidArgument, naming key or file, when the least exceeds the greatest.
Result<VideoSettings> video_settings(const VideoSpec& spec, const VideoProcessorConfig& processor,
                                     const VisionConfig& vision);

}  // namespace troupe
