#pragma once

#include <cstdint>

#include "base/data/sample_index.h"
#include "base/result.h"

namespace troupe {

struct ImageSize {
  int64_t height = 0, width = 0;  // pixels
};

/// The size to which an image is scaled: multiples of `factor` (patch size x merge size), at least one each way, with
/// the area held between the limits and the shape kept as well as that allows. InvalidArgument when one side is over
/// 200 times the other. Source: the published image processor's rule, rounding halves to even as Python does.
Result<ImageSize> scaled_size(ImageSize size, int64_t factor, int64_t min_pixels, int64_t max_pixels);

/// The grid of patches of a scaled image.
inline IndexedImage grid_of(ImageSize scaled, int64_t patch_size) {
  IndexedImage image;
  image.h = static_cast<int32_t>(scaled.height / patch_size);
  image.w = static_cast<int32_t>(scaled.width / patch_size);
  return image;
}

}  // namespace troupe
