#include "actors/data/positions.h"

#include <algorithm>

namespace troupe {

std::vector<std::array<int64_t, 3>> mrope_positions(int64_t tokens, const std::vector<IndexedImage>& images,
                                                    int64_t merge, double tokens_per_second) {
  std::vector<std::array<int64_t, 3>> positions;
  positions.reserve(static_cast<size_t>(tokens));
  int64_t next = 0;
  const auto add_text = [&](int64_t end) {
    for (; static_cast<int64_t>(positions.size()) < end; ++next) positions.push_back({next, next, next});
  };
  for (const auto& image : images) {
    add_text(image.token_offset);
    const int64_t rows = image.h / merge, columns = image.w / merge;
    const float interval = image.is_video() ? static_cast<float>(tokens_per_second) * image.seconds : 1.0F;
    for (int64_t frame = 0; frame < image.t; ++frame) {
      const auto t = static_cast<int64_t>(static_cast<float>(frame) * interval);
      for (int64_t h = 0; h < rows; ++h)
        for (int64_t w = 0; w < columns; ++w) positions.push_back({next + t, next + h, next + w});
    }
    next += std::max(rows, columns);
  }
  add_text(tokens);
  return positions;
}

}  // namespace troupe
