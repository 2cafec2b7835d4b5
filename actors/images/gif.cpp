#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"

namespace troupe::codecs {
namespace {

constexpr uint32_t kExtension = 0x21, kImage = 0x2C;
/// Bytes of a colour table that a packed field announces.
size_t table_bytes(uint32_t packed) { return (packed & 0x80u) != 0 ? size_t{3} << ((packed & 7u) + 1) : 0; }

/// The position behind a chain of sub-blocks, or npos when the file ends inside of it.
size_t behind_blocks(std::string_view s, size_t at) {
  while (at < s.size()) {
    const uint32_t size = bytes::at(s, at);
    if (size == 0) return at + 1;
    at += 1 + size;
  }
  return std::string_view::npos;
}

/// The position of the first image's descriptor, or npos.
size_t first_image(std::string_view s) {
  size_t at = 13 + table_bytes(bytes::at(s, 10));
  while (at < s.size() && bytes::at(s, at) == kExtension) at = behind_blocks(s, at + 2);
  return at < s.size() && bytes::at(s, at) == kImage ? at : std::string_view::npos;
}

struct Source {
  std::string_view data;
  size_t at;
};

int read(GifFileType* gif, GifByteType* out, int size) {
  auto* source = static_cast<Source*>(gif->UserData);
  const size_t count = std::min(static_cast<size_t>(size), source->data.size() - source->at);
  std::memcpy(out, source->data.data() + source->at, count);
  source->at += count;
  return static_cast<int>(count);
}

using Gif = std::unique_ptr<GifFileType, void (*)(GifFileType*)>;
void close(GifFileType* gif) {
  int ignored = 0;
  DGifCloseFile(gif, &ignored);
}

Error damaged(const Gif& gif, int code) {
  const char* why = GifErrorString(gif != nullptr ? gif->Error : code);
  return data_loss(std::string("is a GIF that does not decode: ") + (why != nullptr ? why : "unknown error"));
}

/// Goes to the first image's descriptor. `transparent`: the colour number that stands for nothing, or -1.
bool find_image(GifFileType* gif, int& transparent) {
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return false;
    if (type == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(gif) != GIF_ERROR;
    if (type != EXTENSION_RECORD_TYPE) return false;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return false;
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) != GIF_ERROR)
      transparent = control.TransparentColor;
    while (block != nullptr)
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return false;
  }
}

/// Draws the descriptor's lines onto the white canvas; what lies outside of it is not drawn.
bool draw(GifFileType* gif, int transparent, RgbImage& image) {
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* colours = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (colours == nullptr || frame.Width <= 0 || frame.Height <= 0) return false;
  std::vector<GifByteType> line(static_cast<size_t>(frame.Width));
  const auto draw_line = [&](int64_t y) {
    if (DGifGetLine(gif, line.data(), frame.Width) == GIF_ERROR) return false;
    const int64_t row = frame.Top + y, columns = std::min<int64_t>(frame.Width, image.width - frame.Left);
    if (row >= image.height) return true;
    uint8_t* out = image.pixels.data() + 3 * (row * image.width + frame.Left);
    for (int64_t x = 0; x < columns; ++x, out += 3) {
      const int number = line[static_cast<size_t>(x)];
      if (number == transparent) continue;
      const GifColorType colour = number < colours->ColorCount ? colours->Colors[number] : GifColorType{0, 0, 0};
      out[0] = colour.Red;
      out[1] = colour.Green;
      out[2] = colour.Blue;
    }
    return true;
  };
  struct Pass {
    int first, step;
  };
  constexpr std::array<Pass, 4> kInterlaced = {Pass{0, 8}, Pass{4, 8}, Pass{2, 4}, Pass{1, 2}};
  constexpr std::array<Pass, 1> kPlain = {Pass{0, 1}};
  const auto run = [&](const auto& passes) {
    for (const Pass& pass : passes)
      for (int y = pass.first; y < frame.Height; y += pass.step)
        if (!draw_line(y)) return false;
    return true;
  };
  return frame.Interlace ? run(kInterlaced) : run(kPlain);
}

}  // namespace

Result<ImageHeader> gif_header(std::string_view file) {
  const ImageHeader header{ImageType::kGif, bytes::le16(file, 6), bytes::le16(file, 8), 1};
  const size_t image = first_image(file);
  if (image == std::string_view::npos) return invalid_argument("is a GIF without a picture, or one that is cut off");
  // Only the picture that is read has to be whole.
  const size_t data = image + 10 + table_bytes(bytes::at(file, image + 9)) + 1;
  if (behind_blocks(file, data) == std::string_view::npos) return invalid_argument("is a GIF that is cut off");
  const int64_t width = bytes::le16(file, image + 5), height = bytes::le16(file, image + 7);
  if (width * height > kMaxImagePixels)
    return invalid_argument("is a GIF whose first frame states " + std::to_string(width) + " x " +
                            std::to_string(height) + " pixels, more than the limit of 2^28");
  return header;
}

Status decode_gif(std::string_view file, const ImageHeader& header, RgbImage& image) {
  Source source{file, 0};
  int code = 0;
  const Gif gif(DGifOpen(&source, read, &code), close);
  if (gif == nullptr) return damaged(gif, code);
  image.pixels.assign(static_cast<size_t>(header.stored_width * header.stored_height * 3), 0xFF);
  int transparent = NO_TRANSPARENT_COLOR;
  if (!find_image(gif.get(), transparent) || !draw(gif.get(), transparent, image)) return damaged(gif, code);
  return {};
}

}  // namespace troupe::codecs
