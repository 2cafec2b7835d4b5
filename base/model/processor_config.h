#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/model/model_config.h"
#include "base/model/pixel_values.h"
#include "base/result.h"

namespace troupe {

/// The limits of an image processor that names none.
inline constexpr int64_t kDefaultImageMinPixels = 56 * 56, kDefaultImageMaxPixels = 1280 * 28 * 28;

/// What a model folder's image processor file says: the image_processor part of processor_config.json, else
/// preprocessor_config.json, as transformers looks for it.
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

/// What a person should know of a folder with both image processor files when they make different pixels or grids, or
/// nothing.
std::string image_processor_warning(const std::string& folder);

}  // namespace troupe
