#include "actors/images/image_file.h"

#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/pixel_forms.h"

namespace troupe {
namespace {

Result<ImageHeader> header_by_content(std::string_view s) {
  if (s.empty()) return invalid_argument("is empty (0 bytes)");
  const auto type = image_type_of(s);
  if (!type) {
    const auto name = unread_image_type_of(s);
    return invalid_argument("is " + (name.empty() ? "not an image of a known type" : std::string(name)) +
                            "; JPEG, PNG, WebP, GIF, BMP and TIFF are read");
  }
  switch (*type) {
    case ImageType::kJpeg:
      return codecs::jpeg_header(s);
    case ImageType::kPng:
      return codecs::png_header(s);
    case ImageType::kWebp:
      return codecs::webp_header(s);
    case ImageType::kGif:
      return codecs::gif_header(s);
    case ImageType::kBmp:
      return codecs::bmp_header(s);
    case ImageType::kTiff:
      return codecs::tiff_header(s);
  }
  return internal_error("has a type without a header");
}

}  // namespace

std::optional<ImageType> image_type_of(std::string_view s) {
  if (s.starts_with("\xFF\xD8\xFF")) return ImageType::kJpeg;
  if (s.starts_with("\x89PNG\r\n\x1A\n")) return ImageType::kPng;
  if (s.starts_with("RIFF") && bytes::part(s, 8, 4) == "WEBP") return ImageType::kWebp;
  if (s.starts_with("GIF87a") || s.starts_with("GIF89a")) return ImageType::kGif;
  if (s.starts_with("BM")) return ImageType::kBmp;
  for (const auto mark : {std::string_view("II*\0", 4), std::string_view("MM\0*", 4), std::string_view("II+\0", 4),
                          std::string_view("MM\0+", 4)})
    if (s.starts_with(mark)) return ImageType::kTiff;
  return {};
}

std::string_view unread_image_type_of(std::string_view s) {
  const auto brand = bytes::part(s, 4, 8);
  if (brand == "ftypavif" || brand == "ftypavis") return "an AVIF";
  for (const auto heic : {"ftypheic", "ftypheix", "ftyphevc", "ftypmif1", "ftypmsf1"})
    if (brand == heic) return "a HEIC";
  if (s.starts_with("\xFF\x0A") || brand == "JXL \r\n\x87\n") return "a JPEG XL";
  return {};
}

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

std::string header_library_versions() { return codecs::tiff_version(); }

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
