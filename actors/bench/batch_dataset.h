#pragma once

#include <memory>
#include <string>

#include "actors/data/dataset.h"

/// A dataset of one prepared batch, for benches: every sample is a row of the batch.
namespace troupe {

/// Reads a safetensors file with input_ids [B, S] and labels [B, S] (int64, -100: not supervised), pixel_values [P,
/// patch_dim] (fp32) and image_grid_thw [images, 3] (int64), as transformers' processor lays them out. Errors name the
/// file and the tensor.
Result<std::unique_ptr<Dataset>> open_batch_dataset(const std::string& path, const ModelConfig& config);

/// The same shapes without a file: `images` samples of one image of grid h x w patches and `text` text tokens each,
/// random content.
struct BatchShape {
  int64_t images = 4, grid_h = 24, grid_w = 32, text = 256;
};
std::unique_ptr<Dataset> make_random_batch(const BatchShape& shape, const ModelConfig& config, uint64_t seed);

}  // namespace troupe
