#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/model/model_config.h"
#include "base/result.h"

namespace troupe {

/// What a model folder's image processor file says: preprocessor_config.json, or the image_processor part of
/// processor_config.json.
struct ProcessorConfig {
  std::optional<int64_t> min_pixels, max_pixels;
  std::array<double, 3> mean = {0.48145466, 0.4578275, 0.40821073};  // OpenAI CLIP's
  std::array<double, 3> deviation = {0.26862954, 0.26130258, 0.27577711};
  double rescale = 1.0 / 255.0;
  std::optional<int64_t> patch_size, temporal_patch_size, merge_size;

  /// InvalidArgument when the file's patch or merge sizes differ from the model's.
  Status check_against(const VisionConfig& vision, const std::string& folder) const;
};

/// A folder without such a file gives the defaults. Errors name the file and the key.
Result<ProcessorConfig> read_processor_config(const std::string& folder);

}  // namespace troupe
