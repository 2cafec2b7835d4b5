#include <png.h>
#include <webp/decode.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include "actors/data/image_file.h"

// clang-format off: libjpeg's headers need <cstdio> before them, and this order.
#include <jerror.h>
#include <jpeglib.h>
// clang-format on

namespace troupe {
namespace {

/// (c * a + white * (255 - a)) / 255, rounded.
uint8_t on_white(uint8_t c, uint8_t a) { return static_cast<uint8_t>((c * a + 255 * (255 - a) + 127) / 255); }

std::vector<uint8_t> lay_on_white(const std::vector<uint8_t>& rgba) {
  std::vector<uint8_t> rgb(rgba.size() / 4 * 3);
  for (size_t i = 0; i < rgba.size() / 4; ++i)
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = on_white(rgba[4 * i + c], rgba[4 * i + 3]);
  return rgb;
}

/// libjpeg's handlers with a way back into our code.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  bool ended_early;
};

void jpeg_failed(j_common_ptr codec) {
  auto* errors = reinterpret_cast<JpegErrors*>(codec->err);
  codec->err->format_message(codec, errors->message);
  std::longjmp(errors->back, 1);
}

void jpeg_message(j_common_ptr codec, int level) {
  // A file that ends early is only a warning to libjpeg, which fills the rest with grey.
  const int code = codec->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
    reinterpret_cast<JpegErrors*>(codec->err)->ended_early = true;
}

/// Decodes into `out` (sized by the header: width * height * channels). Plain data only, because of the jump.
bool run_jpeg(jpeg_decompress_struct& codec, JpegErrors& errors, const unsigned char* data, size_t size, uint8_t* out,
              size_t row_bytes, int64_t height, int channels) {
  if (setjmp(errors.back)) return false;
  jpeg_create_decompress(&codec);
  jpeg_mem_src(&codec, data, static_cast<unsigned long>(size));
  jpeg_read_header(&codec, TRUE);
  codec.out_color_space = channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&codec);
  if (codec.output_width * static_cast<size_t>(channels) != row_bytes || codec.output_height != height) {
    std::strcpy(errors.message, "the size differs from the header's");
    return false;
  }
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW row = out + codec.output_scanline * row_bytes;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  return true;
}

/// Number of colour components, from the frame header.
int jpeg_components(std::string_view s) {
  for (size_t at = 2; at + 10 <= s.size();) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[at + i]); };
    if (byte(0) != 0xFF || byte(1) == 0xFF || byte(1) == 0x01 || (byte(1) >= 0xD0 && byte(1) <= 0xD8)) {
      at += byte(1) == 0xFF || byte(0) != 0xFF ? 1 : 2;
      continue;
    }
    if (byte(1) >= 0xC0 && byte(1) <= 0xCF && byte(1) != 0xC4 && byte(1) != 0xC8 && byte(1) != 0xCC) return byte(9);
    at += 2 + (static_cast<size_t>(byte(2)) << 8 | byte(3));
  }
  return 3;
}

Status decode_jpeg(std::string_view bytes, const ImageHeader& header, RgbImage& image) {
  const int channels = jpeg_components(bytes) == 4 ? 4 : 3;
  const size_t row_bytes = static_cast<size_t>(header.stored_width) * static_cast<size_t>(channels);
  std::vector<uint8_t> raw(row_bytes * static_cast<size_t>(header.stored_height));
  jpeg_decompress_struct codec{};
  JpegErrors errors{};
  codec.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jpeg_failed;
  errors.manager.emit_message = jpeg_message;
  const bool decoded = run_jpeg(codec, errors, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                                raw.data(), row_bytes, header.stored_height, channels);
  jpeg_destroy_decompress(&codec);
  if (!decoded) return data_loss(std::string("is a JPEG that does not decode: ") + errors.message);
  if (errors.ended_early) return data_loss("is a JPEG whose data end early");
  if (channels == 3) {
    image.pixels = std::move(raw);
    return {};
  }
  image.pixels.resize(raw.size() / 4 * 3);
  for (size_t i = 0; i < raw.size() / 4; ++i) {
    // Adobe stores CMYK inverted: what lies in the file is 255 - ink, so a product of two samples is already light.
    const unsigned key = raw[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = static_cast<uint8_t>((raw[4 * i + c] * key + 127) / 255);
  }
  return {};
}

struct PngSource {
  const char* data;
  size_t size, at;
  char message[128];
};

void png_read(png_structp png, png_bytep out, png_size_t size) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (size > source->size - source->at) png_error(png, "the data end early");
  std::memcpy(out, source->data + source->at, size);
  source->at += size;
}

void png_failed(png_structp png, png_const_charp message) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof(source->message), "%s", message);
  png_longjmp(png, 1);
}

void png_warned(png_structp, png_const_charp) {}

/// Decodes to RGBA, 8 bits, into `rows`. Plain data only, because of the jump.
bool run_png(png_structp png, png_infop info, PngSource& source, png_bytepp rows, size_t row_bytes) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &source, png_read);
  png_read_info(png, info);
  png_set_expand(png);    // palettes, fewer than 8 bits, transparent colours
  png_set_strip_16(png);  // the high byte
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "the pixel form is not understood");
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

Status decode_png(std::string_view bytes, const ImageHeader& header, RgbImage& image) {
  PngSource source{bytes.data(), bytes.size(), 0, {}};
  const size_t row_bytes = static_cast<size_t>(header.stored_width) * 4,
               height = static_cast<size_t>(header.stored_height);
  std::vector<uint8_t> rgba(row_bytes * height);
  std::vector<png_bytep> rows(height);
  for (size_t y = 0; y < height; ++y) rows[y] = rgba.data() + y * row_bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, png_failed, png_warned);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool decoded = info != nullptr && run_png(png, info, source, rows.data(), row_bytes);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!decoded) return data_loss(std::string("is a PNG that does not decode: ") + source.message);
  image.pixels = lay_on_white(rgba);
  return {};
}

Status decode_webp(std::string_view bytes, const ImageHeader& header, RgbImage& image) {
  std::vector<uint8_t> rgba(static_cast<size_t>(header.stored_width * header.stored_height) * 4);
  int width = 0, height = 0;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (!WebPGetInfo(data, bytes.size(), &width, &height) || width != header.stored_width ||
      height != header.stored_height)
    return data_loss("is a WebP file whose headers disagree");
  if (WebPDecodeRGBAInto(data, bytes.size(), rgba.data(), rgba.size(), width * 4) == nullptr)
    return data_loss("is a WebP file that does not decode");
  image.pixels = lay_on_white(rgba);
  return {};
}

/// Turns the stored picture upright. Exif's orientation names where the stored first row and first column lie.
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

}  // namespace

Result<RgbImage> decode_image(std::string_view bytes) {
  TROUPE_ASSIGN(const auto header, read_image_header(bytes));
  RgbImage image{header.stored_width, header.stored_height, {}};
  switch (header.type) {
    case ImageType::kJpeg:
      TROUPE_RETURN_IF_ERROR(decode_jpeg(bytes, header, image));
      break;
    case ImageType::kPng:
      TROUPE_RETURN_IF_ERROR(decode_png(bytes, header, image));
      break;
    case ImageType::kWebp:
      TROUPE_RETURN_IF_ERROR(decode_webp(bytes, header, image));
      break;
  }
  return upright(std::move(image), header.orientation);
}

}  // namespace troupe
