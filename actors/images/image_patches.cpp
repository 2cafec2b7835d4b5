#include "actors/images/image_patches.h"

#include "actors/images/frame_patches.h"

namespace troupe {

at::Tensor image_patches(const RgbImage& image, ImageSize scaled, const VisionConfig& vision,
                         const PixelValues& pixel_values) {
  FramePatches patches(scaled, 1, vision, pixel_values);
  patches.add(image);
  return patches.take();
}

}  // namespace troupe
