#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/data/sample_index.h"

namespace troupe {

/// Three-row rotary positions (t, h, w) of a sample's tokens. Text counts up by one on all rows; an image's tokens have
/// its first position plus their place in the merged grid; what follows an image goes on behind the longer of its
/// merged sides, however long it lasts. The frames of a video lie `tokens_per_second` times its seconds apart on row t,
/// cut off to whole numbers and computed in fp32 as the published model does. Source: Qwen2.5-VL technical report
/// (arXiv:2502.13923), section 2.1.2.
std::vector<std::array<int64_t, 3>> mrope_positions(int64_t tokens, const std::vector<IndexedImage>& images,
                                                    int64_t merge, double tokens_per_second);

}  // namespace troupe
