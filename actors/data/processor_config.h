#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/images/pixel_values.h"
#include "base/model/model_config.h"
#include "base/result.h"

namespace troupe {

/// What a model folder's image processor file says: preprocessor_config.json, or the image_processor part of
/// processor_config.json.
struct ProcessorConfig : PixelValues {
  std::optional<int64_t> min_pixels, max_pixels;
  std::optional<int64_t> patch_size, temporal_patch_size, merge_size;

  /// InvalidArgument when the file's patch or merge sizes differ from the model's.
  Status check_against(const VisionConfig& vision, const std::string& folder) const;
};

/// What a model folder's video processor file says: the video_processor part of processor_config.json, else
/// video_preprocessor_config.json, else preprocessor_config.json, as the published processor looks for it.
struct VideoProcessorConfig : ProcessorConfig {
  std::optional<double> fps;
  std::optional<int64_t> min_frames, max_frames;
  bool cap_pixels_per_frame = false;
  int64_t max_video_tokens = 128000;  // of all frames together, with cap_pixels_per_frame
};

/// A folder without such a file gives the defaults. Errors name the file and the key.
Result<ProcessorConfig> read_processor_config(const std::string& folder);
Result<VideoProcessorConfig> read_video_processor_config(const std::string& folder);

}  // namespace troupe
