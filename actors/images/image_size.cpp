#include "actors/images/image_size.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe {

Result<ImageSize> scaled_size(ImageSize size, int64_t factor, int64_t min_pixels, int64_t max_pixels) {
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width),
             unit = static_cast<double>(factor);
  if (std::max(height, width) / std::min(height, width) > 200)
    return invalid_argument("is " + std::to_string(size.width) + " x " + std::to_string(size.height) +
                            " pixels: one side is more than 200 times the other");
  const auto multiple = [&](double count) { return std::max(factor, static_cast<int64_t>(count) * factor); };
  // Whether an area is below the limit is asked of the rounded sides, where a side may still be 0.
  const int64_t area = static_cast<int64_t>(std::nearbyint(height / unit)) *
                       static_cast<int64_t>(std::nearbyint(width / unit)) * factor * factor;
  if (area > max_pixels) {
    const double beta = std::sqrt(height * width / static_cast<double>(max_pixels));
    return ImageSize{multiple(std::floor(height / beta / unit)), multiple(std::floor(width / beta / unit))};
  }
  if (area < min_pixels) {
    const double beta = std::sqrt(static_cast<double>(min_pixels) / (height * width));
    return ImageSize{multiple(std::ceil(height * beta / unit)), multiple(std::ceil(width * beta / unit))};
  }
  return ImageSize{multiple(std::nearbyint(height / unit)), multiple(std::nearbyint(width / unit))};
}

}  // namespace troupe
