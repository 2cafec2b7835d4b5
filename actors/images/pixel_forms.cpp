#include "actors/images/pixel_forms.h"

#include <cstring>

namespace troupe {

void lay_on_white(std::vector<uint8_t>& rgba) {
  const size_t pixels = rgba.size() / 4;
  uint8_t* out = rgba.data();  // never overtakes `in`
  const uint8_t* in = rgba.data();
  for (size_t i = 0; i < pixels; ++i, in += 4, out += 3) {
    const unsigned alpha = in[3], light = 255 * (255 - alpha) + 127;
    const unsigned red = in[0] * alpha + light, green = in[1] * alpha + light, blue = in[2] * alpha + light;
    out[0] = static_cast<uint8_t>(red / 255);
    out[1] = static_cast<uint8_t>(green / 255);
    out[2] = static_cast<uint8_t>(blue / 255);
  }
  rgba.resize(pixels * 3);
}

RgbImage upright(RgbImage stored, int orientation) {
  if (orientation == 1) return stored;
  const bool exchanged = orientation >= 5;
  const bool flip_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;  // of the stored columns
  const bool flip_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;  // of the stored rows
  RgbImage out;
  out.width = exchanged ? stored.height : stored.width;
  out.height = exchanged ? stored.width : stored.height;
  out.pixels.resize(stored.pixels.size());
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t from_x = exchanged ? y : x, from_y = exchanged ? x : y;
      if (flip_x) from_x = stored.width - 1 - from_x;
      if (flip_y) from_y = stored.height - 1 - from_y;
      std::memcpy(&out.pixels[static_cast<size_t>(3 * (y * out.width + x))],
                  &stored.pixels[static_cast<size_t>(3 * (from_y * stored.width + from_x))], 3);
    }
  }
  return out;
}

}  // namespace troupe
