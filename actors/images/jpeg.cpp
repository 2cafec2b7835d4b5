#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/exif.h"

// clang-format off: libjpeg's headers need <cstdio> before them, and this order.
#include <jerror.h>
#include <jpeglib.h>
// clang-format on

namespace troupe::codecs {
namespace {

constexpr int kMaxScans = 500;  // of a progressive file; each costs a pass over the whole picture

constexpr std::string_view kXmpMark("http://ns.adobe.com/xap/1.0/\0", 29);

bool is_frame(uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/// Calls visit(marker, body, position) for each segment up to the first scan, until it returns false.
template <typename Visit>
void for_each_segment(std::string_view s, const Visit& visit) {
  for (size_t at = 2; at + 4 <= s.size();) {
    if (bytes::at(s, at) != 0xFF) return;
    const uint32_t marker = bytes::at(s, at + 1);
    if (marker == 0xFF) {  // fill byte
      ++at;
    } else if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // stands alone
      at += 2;
    } else {
      const size_t size = bytes::be16(s, at + 2);
      if (!visit(marker, bytes::part(s, at + 4, size < 2 ? 0 : size - 2), at)) return;
      at += 2 + size;
    }
  }
}

/// Number of colour components, from the frame header.
int components_of(std::string_view s) {
  int components = 3;
  for_each_segment(s, [&](uint32_t marker, std::string_view body, size_t) {
    if (is_frame(marker)) components = static_cast<int>(bytes::at(body, 5));
    return !is_frame(marker) && marker != 0xDA;
  });
  return components;
}

// What decoding of arithmetic codes needs is left out of some builds of libjpeg.
#ifdef D_ARITH_CODING_SUPPORTED
constexpr bool kArithmetic = true;
#else
constexpr bool kArithmetic = false;
#endif

/// What a frame header states that libjpeg does not read; empty for the rest.
std::string foreign_kind(uint32_t marker, std::string_view frame) {
  if ((marker & 3) == 3) return "a lossless JPEG";
  if ((marker & 7) >= 5) return "a hierarchical JPEG";
  if (marker >= 0xC9 && !kArithmetic) return "a JPEG of arithmetic codes";
  if (const uint32_t bits = bytes::at(frame, 0); bits != 8)
    return "a JPEG of " + std::to_string(bits) + " bits a sample";
  const uint32_t components = bytes::at(frame, 5);
  if (components != 1 && components != 3 && components != 4)
    return "a JPEG of " + std::to_string(components) + " components";
  return "";
}

/// libjpeg's handlers with a way back into our code.
struct Handlers {
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  bool damaged;
};

Handlers& handlers_of(j_common_ptr codec) { return *reinterpret_cast<Handlers*>(codec->err); }

[[noreturn]] void failed(j_common_ptr codec) {
  codec->err->format_message(codec, handlers_of(codec).message);
  std::longjmp(handlers_of(codec).back, 1);
}

void warned(j_common_ptr codec, int level) {
  // To libjpeg damage inside of the data is only worth a warning; it goes on with grey. These are about less.
  constexpr std::array kHarmless = {JWRN_ADOBE_XFORM, JWRN_BOGUS_PROGRESSION, JWRN_EXTRANEOUS_DATA,
                                    JWRN_JFIF_MAJOR,  JWRN_NOT_SEQUENTIAL,    JWRN_TOO_MUCH_DATA};
  if (level >= 0 || std::find(kHarmless.begin(), kHarmless.end(), codec->err->msg_code) != kHarmless.end()) return;
  Handlers& handlers = handlers_of(codec);
  if (!handlers.damaged) codec->err->format_message(codec, handlers.message);
  handlers.damaged = true;
}

void progressed(j_common_ptr codec) {
  if (reinterpret_cast<jpeg_decompress_struct*>(codec)->input_scan_number <= kMaxScans) return;
  std::snprintf(handlers_of(codec).message, JMSG_LENGTH_MAX, "it has more than %d scans", kMaxScans);
  std::longjmp(handlers_of(codec).back, 1);
}

/// Decodes into `out` (sized by the header: width * height * channels). Plain data only, because of the jump.
bool run(jpeg_decompress_struct& codec, Handlers& handlers, std::string_view file, uint8_t* out, size_t row_bytes,
         int64_t height, int channels) {
  if (setjmp(handlers.back)) return false;
  jpeg_create_decompress(&codec);
  codec.progress = &handlers.progress;
  jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(file.data()), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&codec, TRUE);
  codec.out_color_space = channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&codec);
  if (codec.output_width * static_cast<size_t>(channels) != row_bytes || codec.output_height != height) {
    std::snprintf(handlers.message, JMSG_LENGTH_MAX, "the size differs from the header's");
    return false;
  }
  constexpr JDIMENSION kRows = 8;
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW rows[kRows];
    const JDIMENSION count = std::min(kRows, codec.output_height - codec.output_scanline);
    for (JDIMENSION i = 0; i < count; ++i) rows[i] = out + (codec.output_scanline + i) * row_bytes;
    jpeg_read_scanlines(&codec, rows, count);
  }
  jpeg_finish_decompress(&codec);
  return true;
}

/// CMYK to RGB in place. Adobe stores it inverted: what lies in the file is 255 - ink, so a product of two samples is
/// already light.
void to_rgb(std::vector<uint8_t>& cmyk) {
  const size_t pixels = cmyk.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    const unsigned key = cmyk[4 * i + 3];
    const std::array<unsigned, 3> ink = {cmyk[4 * i], cmyk[4 * i + 1], cmyk[4 * i + 2]};
    for (size_t c = 0; c < 3; ++c) cmyk[3 * i + c] = static_cast<uint8_t>((ink[c] * key + 127) / 255);
  }
  cmyk.resize(pixels * 3);
}

}  // namespace

Result<ImageHeader> jpeg_header(std::string_view file) {
  ImageHeader header{ImageType::kJpeg, 0, 0, 1};
  size_t scan = 0;
  std::string foreign;
  std::string_view exif, xmp;
  for_each_segment(file, [&](uint32_t marker, std::string_view body, size_t at) {
    if (is_frame(marker)) {
      header.stored_height = bytes::be16(body, 1);
      header.stored_width = bytes::be16(body, 3);
      foreign = foreign_kind(marker, body);
    } else if (marker == 0xE1 && exif.empty() && body.starts_with(std::string_view("Exif\0\0", 6))) {
      exif = body;
    } else if (marker == 0xE1 && body.starts_with(kXmpMark)) {
      xmp = body.substr(kXmpMark.size());
    }
    if (marker == 0xDA) scan = at;
    return marker != 0xDA && marker != 0xD9;
  });
  // The end mark may be followed by padding, so it is searched for, from the back; what is embedded before the scan
  // does not count.
  const size_t end = file.rfind("\xFF\xD9");
  if (scan == 0 || end == std::string_view::npos || end < scan)
    return invalid_argument("is a JPEG that is cut off or whose header is damaged");
  if (!foreign.empty()) return invalid_argument("is " + foreign + "; that is not read");
  header.orientation = stated_orientation(exif, xmp);
  return header;
}

Status decode_jpeg(std::string_view file, const ImageHeader& header, RgbImage& image) {
  const int channels = components_of(file) == 4 ? 4 : 3;
  const size_t row_bytes = static_cast<size_t>(header.stored_width) * static_cast<size_t>(channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(header.stored_height));
  jpeg_decompress_struct codec{};
  Handlers handlers{};
  codec.err = jpeg_std_error(&handlers.errors);
  handlers.errors.error_exit = failed;
  handlers.errors.emit_message = warned;
  handlers.progress.progress_monitor = progressed;
  const bool decoded = run(codec, handlers, file, image.pixels.data(), row_bytes, header.stored_height, channels);
  jpeg_destroy_decompress(&codec);
  if (!decoded) return data_loss(std::string("is a JPEG that does not decode: ") + handlers.message);
  if (handlers.damaged)
    return data_loss(std::string("is a JPEG whose data are damaged or end early: ") + handlers.message);
  if (channels == 4) to_rgb(image.pixels);
  return {};
}

}  // namespace troupe::codecs
