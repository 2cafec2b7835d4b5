#include "actors/images/image_file.h"

#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/pixel_forms.h"

namespace troupe {
namespace {

Result<ImageHeader> header_by_content(std::string_view s) {
  if (s.empty()) return invalid_argument("is empty (0 bytes)");
  if (s.starts_with("\xFF\xD8\xFF")) return codecs::jpeg_header(s);
  if (s.starts_with("\x89PNG\r\n\x1A\n")) return codecs::png_header(s);
  if (s.starts_with("RIFF") && bytes::part(s, 8, 4) == "WEBP") return codecs::webp_header(s);
  if (s.starts_with("GIF87a") || s.starts_with("GIF89a")) return codecs::gif_header(s);
  if (s.starts_with("BM")) return codecs::bmp_header(s);
  for (const auto mark : {std::string_view("II*\0", 4), std::string_view("MM\0*", 4), std::string_view("II+\0", 4),
                          std::string_view("MM\0+", 4)})
    if (s.starts_with(mark)) return codecs::tiff_header(s);
  std::string name = "not an image of a known type";
  const auto brand = bytes::part(s, 4, 8);
  if (brand == "ftypavif" || brand == "ftypavis") name = "an AVIF";
  if (brand == "ftypheic" || brand == "ftypheix" || brand == "ftypmif1") name = "a HEIC";
  return invalid_argument("is " + name + "; JPEG, PNG, WebP, GIF, BMP and TIFF are read");
}

}  // namespace

Result<ImageHeader> read_image_header(std::string_view bytes) {
  TROUPE_ASSIGN(const auto header, header_by_content(bytes));
  const std::string size =
      std::to_string(header.stored_width) + " x " + std::to_string(header.stored_height) + " pixels";
  if (header.stored_width <= 0 || header.stored_height <= 0)
    return invalid_argument("has a header that states " + size);
  if (header.stored_width > kMaxImagePixels / header.stored_height)
    return invalid_argument("states " + size + ", more than the limit of 2^28");
  return header;
}

Result<RgbImage> decode_image(std::string_view bytes) {
  TROUPE_ASSIGN(const auto header, read_image_header(bytes));
  RgbImage image{header.stored_width, header.stored_height, {}};
  const auto decode = [&]() -> Status {
    switch (header.type) {
      case ImageType::kJpeg:
        return codecs::decode_jpeg(bytes, header, image);
      case ImageType::kPng:
        return codecs::decode_png(bytes, header, image);
      case ImageType::kWebp:
        return codecs::decode_webp(bytes, header, image);
      case ImageType::kGif:
        return codecs::decode_gif(bytes, header, image);
      case ImageType::kBmp:
        return codecs::decode_bmp(bytes, header, image);
      case ImageType::kTiff:
        return codecs::decode_tiff(bytes, header, image);
    }
    return internal_error("has a type without a decoder");
  };
  TROUPE_RETURN_IF_ERROR(decode());
  return upright(std::move(image), header.orientation);
}

}  // namespace troupe
