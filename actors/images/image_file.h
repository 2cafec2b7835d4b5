#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe {

enum class ImageType { kJpeg, kPng, kWebp, kGif, kBmp, kTiff };

/// More pixels than this are refused by the header, so that no file can ask for more memory than 4 bytes for each.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

/// What an image file's header says. The size is the stored one; `orientation` is Exif's (1: as stored; 5 to 8 exchange
/// the sides). Of a file with several pictures it is the first: the canvas of an animation, the first page.
struct ImageHeader {
  ImageType type = ImageType::kJpeg;
  int64_t stored_width = 0, stored_height = 0;
  int orientation = 1;
  bool sides_exchanged() const { return orientation >= 5; }
  int64_t width() const { return sides_exchanged() ? stored_height : stored_width; }
  int64_t height() const { return sides_exchanged() ? stored_width : stored_height; }
};

/// The type by the first bytes; none: no picture that is read.
std::optional<ImageType> image_type_of(std::string_view bytes);
/// Of a picture of another type by the first bytes: "an AVIF", "a HEIC", "a JPEG XL"; empty: not known either.
std::string_view unread_image_type_of(std::string_view bytes);

/// Tells the type by content and reads size and orientation without decoding. InvalidArgument with the reason: empty,
/// another type (by name), a header that does not parse, a file that ends before its picture does, more pixels than
/// kMaxImagePixels.
Result<ImageHeader> read_image_header(std::string_view bytes);
/// Versions of the libraries that it is read with, where it is not read by this program itself.
std::string header_library_versions();

/// 8-bit RGB, rows top to bottom, [height, width, 3].
struct RgbImage {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

/// Decodes the first picture and applies the orientation. Grey becomes RGB, CMYK is converted (inverted in JPEG, as
/// Adobe writes it), alpha is laid on white, 16-bit samples are read by their high byte. DataLoss when the data are
/// damaged or end early. Thread-safe; needs at most about 7 bytes a pixel at once.
Result<RgbImage> decode_image(std::string_view bytes);

}  // namespace troupe
