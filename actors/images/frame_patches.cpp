#include "actors/images/frame_patches.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t kChannels = 3;

/// uint8 [3, height, width], contiguous.
at::Tensor scaled_channels(const RgbImage& image, ImageSize scaled) {
  const auto bytes =
      at::from_blob(const_cast<uint8_t*>(image.pixels.data()), {image.height, image.width, kChannels}, at::kByte);
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

FramePatches::FramePatches(ImageSize scaled, int64_t frames, const VisionConfig& vision, const PixelValues& values)
    : scaled_(scaled), vision_(vision) {
  for (size_t c = 0; c < values_.size(); ++c)
    values_[c] = normalised(values.mean[c], values.deviation[c], values.rescale);
  const int64_t together = vision.temporal_patch_size, side = vision.patch_size;
  const int64_t patches = (frames + together - 1) / together * (scaled.height / side) * (scaled.width / side);
  patches_ = at::empty({patches, vision.patch_dim()}, at::kFloat);
}

float* FramePatches::slot(int64_t frame, int64_t patch, int64_t channel) {
  const int64_t together = vision_.temporal_patch_size, side = vision_.patch_size;
  const int64_t of_frame = (scaled_.height / side) * (scaled_.width / side);
  const int64_t row = frame / together * of_frame + patch;
  return patches_.mutable_data_ptr<float>() + row * patches_.size(1) +
         (channel * together + frame % together) * side * side;
}

void FramePatches::add(const RgbImage& frame) {
  TROUPE_CHECK(slot(added_, 0, 0) < patches_.mutable_data_ptr<float>() + patches_.numel());
  const at::Tensor channels = scaled_channels(frame, scaled_);
  write(channels.const_data_ptr<uint8_t>());
  ++added_;
}

void FramePatches::write(const uint8_t* pixels) {
  const int64_t side = vision_.patch_size, merge = vision_.merge_size;
  const int64_t rows = scaled_.height / side, columns = scaled_.width / side;
  int64_t patch = 0;
  const auto write_patch = [&](int64_t row, int64_t column) {
    for (int64_t c = 0; c < kChannels; ++c) {
      float* out = slot(added_, patch, c);
      for (int64_t y = 0; y < side; ++y) {
        const uint8_t* line = pixels + (c * scaled_.height + row * side + y) * scaled_.width + column * side;
        for (int64_t x = 0; x < side; ++x) *out++ = values_[static_cast<size_t>(c)][line[x]];
      }
    }
    ++patch;
  };
  for (int64_t block_row = 0; block_row < rows; block_row += merge)
    for (int64_t block_column = 0; block_column < columns; block_column += merge)
      for (int64_t y = 0; y < merge; ++y)
        for (int64_t x = 0; x < merge; ++x) write_patch(block_row + y, block_column + x);
}

void FramePatches::repeat_last() {
  const int64_t side = vision_.patch_size, patches = (scaled_.height / side) * (scaled_.width / side);
  for (int64_t patch = 0; patch < patches; ++patch)
    for (int64_t c = 0; c < kChannels; ++c)
      std::copy_n(slot(added_ - 1, patch, c), side * side, slot(added_, patch, c));
  ++added_;
}

at::Tensor FramePatches::take() {
  while (added_ % vision_.temporal_patch_size != 0) repeat_last();
  return std::move(patches_);
}

}  // namespace troupe
