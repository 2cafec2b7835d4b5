#include "actors/data/positions.h"

#include <algorithm>

namespace troupe {

std::vector<std::array<int64_t, 3>> mrope_positions(int64_t tokens, const std::vector<IndexedImage>& images,
                                                    int64_t merge) {
  std::vector<std::array<int64_t, 3>> positions;
  positions.reserve(static_cast<size_t>(tokens));
  int64_t next = 0;
  const auto add_text = [&](int64_t end) {
    for (; static_cast<int64_t>(positions.size()) < end; ++next) positions.push_back({next, next, next});
  };
  for (const auto& image : images) {
    add_text(image.token_offset);
    const int64_t rows = image.h / merge, columns = image.w / merge;
    for (int64_t t = 0; t < image.t; ++t)
      for (int64_t h = 0; h < rows; ++h)
        for (int64_t w = 0; w < columns; ++w) positions.push_back({next + t, next + h, next + w});
    next += std::max(rows, columns);
  }
  add_text(tokens);
  return positions;
}

}  // namespace troupe
