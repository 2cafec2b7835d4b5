#pragma once

#include <array>

namespace troupe {

/// How 8-bit pixels become numbers: (pixel * rescale - mean) / deviation, by channel R, G, B.
struct PixelValues {
  std::array<double, 3> mean = {0.48145466, 0.4578275, 0.40821073};  // OpenAI CLIP's
  std::array<double, 3> deviation = {0.26862954, 0.26130258, 0.27577711};
  double rescale = 1.0 / 255.0;
};

}  // namespace troupe
