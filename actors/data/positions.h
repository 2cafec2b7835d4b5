#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/data/sample_index.h"

namespace troupe {

/// Three-row rotary positions (t, h, w) of a sample's tokens. Text counts up by one on all rows; an image's tokens have
/// its first position plus their place in the merged grid; what follows an image goes on behind the longer of its
/// merged sides. Source: Qwen2-VL (arXiv:2409.12191), section 2.1, as published for still images.
std::vector<std::array<int64_t, 3>> mrope_positions(int64_t tokens, const std::vector<IndexedImage>& images,
                                                    int64_t merge);

}  // namespace troupe
