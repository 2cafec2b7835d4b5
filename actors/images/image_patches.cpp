#include "actors/images/image_patches.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <array>

namespace troupe {
namespace {

/// uint8 [3, height, width], contiguous.
at::Tensor scaled_channels(const RgbImage& image, ImageSize scaled) {
  const auto bytes =
      at::from_blob(const_cast<uint8_t*>(image.pixels.data()), {image.height, image.width, 3}, at::kByte);
  const auto channels = bytes.permute({2, 0, 1}).contiguous();
  if (scaled.height == image.height && scaled.width == image.width) return channels;
  return at::_upsample_bicubic2d_aa(channels.unsqueeze(0), {scaled.height, scaled.width}, false)[0].contiguous();
}

/// Normalised value of every byte value of a channel, computed in fp32 as the published processor does.
std::array<float, 256> normalised(double mean, double deviation, double rescale) {
  const auto shift = static_cast<float>(mean) * static_cast<float>(1.0 / rescale);
  const auto scale = static_cast<float>(deviation) * static_cast<float>(1.0 / rescale);
  std::array<float, 256> values{};
  for (size_t v = 0; v < values.size(); ++v) values[v] = (static_cast<float>(v) - shift) / scale;
  return values;
}

}  // namespace

at::Tensor image_patches(const RgbImage& image, ImageSize scaled, const VisionConfig& vision,
                         const PixelValues& pixel_values) {
  const at::Tensor channels = scaled_channels(image, scaled);
  const int64_t p = vision.patch_size, merge = vision.merge_size, frames = vision.temporal_patch_size;
  const int64_t rows = scaled.height / p, columns = scaled.width / p;
  at::Tensor patches = at::empty({rows * columns, vision.patch_dim()}, at::kFloat);
  float* out = patches.data_ptr<float>();
  std::array<std::array<float, 256>, 3> values;
  for (size_t c = 0; c < 3; ++c)
    values[c] = normalised(pixel_values.mean[c], pixel_values.deviation[c], pixel_values.rescale);
  const uint8_t* pixels = channels.data_ptr<uint8_t>();
  const auto write_patch = [&](int64_t row, int64_t column) {
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t f = 0; f < frames; ++f)
        for (int64_t y = 0; y < p; ++y) {
          const uint8_t* line = pixels + (c * scaled.height + row * p + y) * scaled.width + column * p;
          for (int64_t x = 0; x < p; ++x) *out++ = values[static_cast<size_t>(c)][line[x]];
        }
  };
  for (int64_t block_row = 0; block_row < rows; block_row += merge)
    for (int64_t block_column = 0; block_column < columns; block_column += merge)
      for (int64_t y = 0; y < merge; ++y)
        for (int64_t x = 0; x < merge; ++x) write_patch(block_row + y, block_column + x);
  return patches;
}

}  // namespace troupe
