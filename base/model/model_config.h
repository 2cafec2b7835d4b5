#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

/// Shapes of a Qwen2.5-VL model, read from a Hugging Face folder's config.json (flat and nested form).
namespace troupe {

struct VisionConfig {
  int64_t depth = 0, hidden = 0, intermediate = 0, heads = 0, in_channels = 3;
  int64_t patch_size = 14, temporal_patch_size = 2, merge_size = 2, window_size = 112;  // pixels
  int64_t out_hidden = 0;
  std::vector<int64_t> full_attention_blocks;
  double rms_eps = 1e-6;
  int64_t head_dim() const { return hidden / heads; }
  int64_t patch_dim() const { return in_channels * temporal_patch_size * patch_size * patch_size; }
};

struct TextConfig {
  int64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, kv_heads = 0, head_dim = 0, vocabulary = 0;
  double rms_eps = 1e-6, rope_theta = 1e6;
  std::array<int64_t, 3> mrope_section = {16, 24, 24};
  bool tied = false;
  double initializer_range = 0.02;
};

struct ModelConfig {
  VisionConfig vision;
  TextConfig text;
  int64_t image_token = 0, video_token = 0, vision_start_token = 0, vision_end_token = 0;
  double tokens_per_second = 2;
  std::string source;  // path of the config.json
};

/// Reads FOLDER/config.json. Errors name the file, the key, the value and what would be valid; another architecture is
/// refused by name.
Result<ModelConfig> read_model_config(const std::string& folder);

}  // namespace troupe
