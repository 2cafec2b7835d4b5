#include "base/config/synthetic_shape.h"

#include <algorithm>
#include <cmath>

namespace troupe {

std::array<int32_t, 2> synthetic_grid(const SyntheticData& synthetic, const VisionConfig& vision) {
  const auto side = [&](int64_t pixels) {
    const double block = static_cast<double>(vision.patch_size * vision.merge_size);
    return static_cast<int32_t>(std::max(1.0, std::nearbyint(static_cast<double>(pixels) / block)) *
                                static_cast<double>(vision.merge_size));
  };
  return {side(synthetic.height), side(synthetic.width)};
}

int64_t synthetic_sample_tokens(const SyntheticData& synthetic, const VisionConfig& vision) {
  const auto [h, w] = synthetic_grid(synthetic, vision);
  const int64_t merged = int64_t{h} * w / (vision.merge_size * vision.merge_size);
  return synthetic.text_tokens + synthetic.images * (merged + 2);
}

}  // namespace troupe
