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

/// A folder without such a file gives the defaults. Errors name the file and the key.
Result<ProcessorConfig> read_processor_config(const std::string& folder);

}  // namespace troupe
