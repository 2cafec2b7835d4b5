#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/exif.h"
#include "actors/images/pixel_forms.h"
#include "actors/images/png_text.h"

namespace troupe::codecs {
namespace {

struct Source {
  const char* data;
  size_t size, at;
  char message[128];
};

void read(png_structp png, png_bytep out, png_size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->size - source->at) png_error(png, "the data end early");
  std::memcpy(out, source->data + source->at, size);
  source->at += size;
}

void failed(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void warned(png_structp, png_const_charp) {}

/// Reads the header and asks for 8 bits in RGB or, where something is not opaque, RGBA. Returns the channels, 0 on
/// failure. Plain data only, because of the jump.
int begin(png_structp png, png_infop info, Source& source) {
  if (setjmp(png_jmpbuf(png))) return 0;
  png_set_read_fn(png, &source, read);
  png_read_info(png, info);
  const bool alpha =
      (png_get_color_type(png, info) & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS);
  png_set_expand(png);    // palettes, fewer than 8 bits, transparent colours
  png_set_strip_16(png);  // the high byte
  png_set_gray_to_rgb(png);
  if (alpha) png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return alpha ? 4 : 3;
}

bool fill(png_structp png, png_infop info, png_bytepp rows, size_t row_bytes) {
  if (setjmp(png_jmpbuf(png))) return false;
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "the pixel form is not understood");
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

/// Whether the format has such pictures. `head`: the body of IHDR.
bool is_known_form(std::string_view head) {
  const uint32_t bits = bytes::at(head, 8), colour = bytes::at(head, 9);
  const bool small = bits == 1 || bits == 2 || bits == 4, large = bits == 16;
  const bool depth = bits == 8 || (colour == 0 && (small || large)) || (colour == 3 && small) || (colour != 3 && large);
  const bool known = colour == 0 || colour == 2 || colour == 3 || colour == 4 || colour == 6;
  return known && depth && bytes::at(head, 10) == 0 && bytes::at(head, 11) == 0 && bytes::at(head, 12) <= 1;
}

/// What a PNG's chunks say of its orientation; of several the last counts, and "eXIf" before texts.
class Metadata {
 public:
  void add(const PngChunk& chunk) {
    if (chunk.type == "eXIf") exif_ = chunk.body;
    const auto key = png_text_key(chunk);
    if (key == "Raw profile type exif") profile_ = chunk;
    if (key == "XML:com.adobe.xmp") xmp_ = chunk;
  }
  /// Inflates two texts at most, however many the file has.
  int orientation() const {
    return stated_orientation(exif_.empty() ? raw_profile(png_text(profile_)) : std::string(exif_), png_text(xmp_));
  }

 private:
  std::string_view exif_;
  PngChunk profile_, xmp_;
};

}  // namespace

Result<ImageHeader> png_header(std::string_view file) {
  ImageHeader header{ImageType::kPng, bytes::be32(file, 16), bytes::be32(file, 20), 1};
  const auto head = bytes::part(file, 16, 13);
  Metadata metadata;
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t size = bytes::be32(file, at);
    const auto type = bytes::part(file, at + 4, 4);
    if (at + 12 + size > file.size()) break;
    metadata.add({type, file.substr(at + 8, size)});
    if (type == "IEND") {
      if (!is_known_form(head))
        return invalid_argument("is a PNG of colour type " + std::to_string(bytes::at(head, 9)) + " with " +
                                std::to_string(bytes::at(head, 8)) +
                                " bits a sample, or of another method than "
                                "the format has; that is not read");
      header.orientation = metadata.orientation();
      return header;
    }
    at += 12 + size;
  }
  return invalid_argument("is a PNG that is cut off");
}

Status decode_png(std::string_view file, const ImageHeader& header, RgbImage& image) {
  Source source{file.data(), file.size(), 0, {}};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, failed, warned);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const int channels = info == nullptr ? 0 : begin(png, info, source);
  bool decoded = false;
  std::vector<png_bytep> rows;
  if (channels > 0) {
    const size_t row_bytes = static_cast<size_t>(header.stored_width) * static_cast<size_t>(channels);
    image.pixels.resize(row_bytes * static_cast<size_t>(header.stored_height));
    rows.resize(static_cast<size_t>(header.stored_height));
    for (size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
    decoded = fill(png, info, rows.data(), row_bytes);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  if (!decoded) return data_loss(std::string("is a PNG that does not decode: ") + source.message);
  if (channels == 4) lay_on_white(image.pixels);
  return {};
}

}  // namespace troupe::codecs
