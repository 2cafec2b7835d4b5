#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "actors/images/image_file.h"
#include "actors/images/image_size.h"
#include "base/model/model_config.h"
#include "base/model/pixel_values.h"

namespace troupe {

/// The patches of a video, or of a picture as a video of one frame, made frame by frame. Owner thread only.
class FramePatches {
 public:
  /// Every frame is scaled to `scaled` (bicubic with antialiasing on 8-bit values); `frames` will be added at most.
  FramePatches(ImageSize scaled, int64_t frames, const VisionConfig& vision, const PixelValues& values);
  /// The next frame. REQUIRES: there is room for it.
  void add(const RgbImage& frame);
  int64_t added() const { return added_; }
  /// fp32 [patches, in_channels * temporal_patch_size * patch_size^2] on the CPU: by t, there by merge blocks in raster
  /// order, inside of a block in raster order; in a patch channel, frame, row, column. Where frames lack to the last t,
  /// the last one stands again. REQUIRES: a frame was added.
  at::Tensor take();

 private:
  /// Normalises the channels of a scaled frame into slot `added_`.
  void write(const uint8_t* pixels);
  void repeat_last();
  float* slot(int64_t frame, int64_t patch, int64_t channel);

  ImageSize scaled_;
  VisionConfig vision_;
  std::array<std::array<float, 256>, 3> values_;
  at::Tensor patches_;
  int64_t added_ = 0;
};

}  // namespace troupe
