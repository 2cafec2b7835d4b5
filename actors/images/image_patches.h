#pragma once

#include <ATen/core/Tensor.h>

#include "actors/images/image_file.h"
#include "actors/images/image_size.h"
#include "base/model/model_config.h"
#include "base/model/pixel_values.h"

namespace troupe {

/// Scales a picture (bicubic with antialiasing on 8-bit values), normalises it and cuts it into patches.
/// Returns fp32 [patches, in_channels * temporal_patch_size * patch_size^2] on the CPU: patches by merge blocks in
/// raster order, inside of a block in raster order; in a patch channel, frame (the picture repeated), row, column.
at::Tensor image_patches(const RgbImage& image, ImageSize scaled, const VisionConfig& vision,
                         const PixelValues& values);

}  // namespace troupe
