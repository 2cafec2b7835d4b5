#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/pixel_forms.h"

namespace troupe::codecs {
namespace {

enum Compression : uint32_t { kPlain = 0, kRle8 = 1, kRle4 = 2, kMasks = 3, kAlphaMasks = 6 };

/// The two headers of a BMP file, Windows' and OS/2's.
struct Layout {
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0, compression = kPlain;
  size_t data = 0, palette = 0, entry_bytes = 4, colours = 0;
  std::array<uint32_t, 4> masks{};  // red, green, blue, alpha; of 16 and 32 bits
  size_t row_bytes() const { return (static_cast<size_t>(width) * bits + 31) / 32 * 4; }
};

void read_masks(std::string_view s, size_t header, Layout& layout) {
  layout.masks = layout.bits == 16 ? std::array<uint32_t, 4>{0x7C00, 0x03E0, 0x001F, 0}
                                   : std::array<uint32_t, 4>{0xFF0000, 0xFF00, 0xFF, 0};
  if (layout.compression != kMasks && layout.compression != kAlphaMasks) return;
  for (size_t i = 0; i < 3; ++i) layout.masks[i] = bytes::le32(s, 54 + 4 * i);
  if (layout.compression == kAlphaMasks || header >= 56) layout.masks[3] = bytes::le32(s, 66);
}

Result<Layout> read_layout(std::string_view s) {
  Layout layout;
  layout.data = bytes::le32(s, 10);
  const size_t header = bytes::le32(s, 14);
  const bool core = header == 12;
  if (core) {
    layout.width = bytes::le16(s, 18);
    layout.height = bytes::le16(s, 20);
    layout.bits = bytes::le16(s, 24);
    layout.entry_bytes = 3;
  } else {
    layout.width = static_cast<int32_t>(bytes::le32(s, 18));
    const auto height = static_cast<int32_t>(bytes::le32(s, 22));
    layout.top_down = height < 0;
    layout.height = height < 0 ? -int64_t{height} : height;
    layout.bits = bytes::le16(s, 28);
    layout.compression = bytes::le32(s, 30);
    layout.colours = bytes::le32(s, 46);
  }
  if (header < 12 || (header > 12 && header < 40) || header > 4096)
    return invalid_argument("is a BMP with a header of " + std::to_string(header) + " bytes, which is not known");
  const bool masks = layout.compression == kMasks || layout.compression == kAlphaMasks;
  const std::array<uint32_t, 6> known = {1, 4, 8, 16, 24, 32};
  const bool fits = layout.compression == kPlain || (layout.compression == kRle8 && layout.bits == 8) ||
                    (layout.compression == kRle4 && layout.bits == 4) ||
                    (masks && (layout.bits == 16 || layout.bits == 32));
  if (std::find(known.begin(), known.end(), layout.bits) == known.end() || !fits)
    return invalid_argument("is a BMP with " + std::to_string(layout.bits) + " bits a pixel and compression " +
                            std::to_string(layout.compression) + ", which is not read");
  read_masks(s, header, layout);
  layout.palette = 14 + header;
  const size_t most = layout.bits <= 8 ? size_t{1} << layout.bits : 0;
  layout.colours = layout.colours == 0 ? most : std::min(layout.colours, most);
  return layout;
}

bool is_run_length(const Layout& layout) { return layout.compression == kRle8 || layout.compression == kRle4; }

/// Writes the pixels of run-length data as palette numbers [height, width], rows from the bottom. False when the data
/// end before the picture's end mark.
bool run_length_numbers(std::string_view s, const Layout& layout, std::vector<uint8_t>& numbers) {
  const bool four = layout.compression == kRle4;
  int64_t x = 0, y = 0;
  const auto put = [&](uint32_t number) {
    if (x < layout.width && y < layout.height)
      numbers[static_cast<size_t>(y * layout.width + x)] = static_cast<uint8_t>(number);
    ++x;
  };
  const auto nibble = [four](uint32_t byte, size_t i) { return !four ? byte : i % 2 == 0 ? byte >> 4 : byte & 15u; };
  for (size_t at = layout.data; at + 1 < s.size();) {
    const uint32_t count = bytes::at(s, at), code = bytes::at(s, at + 1);
    at += 2;
    if (count > 0) {
      for (size_t i = 0; i < count; ++i) put(nibble(code, i));
    } else if (code == 0) {
      x = 0;
      ++y;
    } else if (code == 1) {
      return true;
    } else if (code == 2) {
      x += bytes::at(s, at);
      y += bytes::at(s, at + 1);
      at += 2;
    } else {
      const size_t size = four ? (code + 1) / 2 : code;
      for (size_t i = 0; i < code; ++i) put(nibble(bytes::at(s, at + (four ? i / 2 : i)), i));
      at += size + size % 2;
    }
    if (y > layout.height) return true;
  }
  return y >= layout.height;  // some writers leave the end mark out
}

class Palette {
 public:
  Palette(std::string_view s, const Layout& layout) {
    for (size_t i = 0; i < layout.colours; ++i)
      for (size_t c = 0; c < 3; ++c)
        colours_[i][2 - c] = static_cast<uint8_t>(bytes::at(s, layout.palette + i * layout.entry_bytes + c));
  }
  const std::array<uint8_t, 3>& operator[](uint32_t number) const { return colours_[number & 0xFFu]; }

 private:
  std::array<std::array<uint8_t, 3>, 256> colours_{};
};

/// The channel that `mask` cuts out of a pixel, scaled to 0..255.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

/// One stored row as RGB, or RGBA where the masks have alpha.
void expand_row(std::string_view row, const Layout& layout, const Palette& palette, uint8_t* out) {
  for (size_t x = 0; x < static_cast<size_t>(layout.width); ++x) {
    if (layout.bits <= 8) {
      const size_t bit = x * layout.bits;
      const uint32_t number = bytes::at(row, bit / 8) >> (8 - layout.bits - bit % 8) & ((1u << layout.bits) - 1);
      out = std::copy_n(palette[number].begin(), 3, out);
    } else if (layout.bits == 24) {
      for (size_t c = 0; c < 3; ++c) *out++ = static_cast<uint8_t>(row[3 * x + 2 - c]);
    } else {
      const uint32_t pixel = layout.bits == 16 ? bytes::le16(row, 2 * x) : bytes::le32(row, 4 * x);
      for (size_t c = 0; c < (layout.masks[3] != 0 ? 4u : 3u); ++c) *out++ = channel(pixel, layout.masks[c]);
    }
  }
}

Status decode_runs(std::string_view file, const Layout& layout, RgbImage& image) {
  std::vector<uint8_t> numbers(static_cast<size_t>(layout.width * layout.height));
  if (!run_length_numbers(file, layout, numbers)) return data_loss("is a BMP whose data end early");
  const Palette palette(file, layout);
  for (int64_t y = 0; y < layout.height; ++y) {
    uint8_t* out = image.pixels.data() + 3 * y * layout.width;
    const uint8_t* in = numbers.data() + (layout.top_down ? y : layout.height - 1 - y) * layout.width;
    for (int64_t x = 0; x < layout.width; ++x) out = std::copy_n(palette[in[x]].begin(), 3, out);
  }
  return {};
}

}  // namespace

Result<ImageHeader> bmp_header(std::string_view file) {
  TROUPE_ASSIGN(const auto layout, read_layout(file));
  const ImageHeader header{ImageType::kBmp, layout.width, layout.height, 1};
  // Sizes that are refused anyway must not overflow the sum.
  if (layout.width <= 0 || layout.height <= 0 || layout.width > kMaxImagePixels / layout.height) return header;
  const size_t last_row = (static_cast<size_t>(layout.width) * layout.bits + 7) / 8;
  const size_t rows =
      is_run_length(layout) ? 2 : layout.row_bytes() * static_cast<size_t>(layout.height - 1) + last_row;
  if (layout.data > file.size() || file.size() - layout.data < rows)
    return invalid_argument("is a BMP that is cut off");
  return header;
}

Status decode_bmp(std::string_view file, const ImageHeader&, RgbImage& image) {
  TROUPE_ASSIGN(const auto layout, read_layout(file));
  const size_t channels = layout.masks[3] != 0 && layout.bits >= 16 && layout.bits != 24 ? 4 : 3;
  image.pixels.resize(static_cast<size_t>(layout.width * layout.height) * channels);
  if (is_run_length(layout)) return decode_runs(file, layout, image);
  const Palette palette(file, layout);
  for (int64_t y = 0; y < layout.height; ++y) {
    const auto stored = static_cast<size_t>(layout.top_down ? y : layout.height - 1 - y);
    expand_row(file.substr(layout.data + stored * layout.row_bytes()), layout, palette,
               image.pixels.data() + static_cast<size_t>(y * layout.width) * channels);
  }
  if (channels == 4) lay_on_white(image.pixels);
  return {};
}

}  // namespace troupe::codecs
