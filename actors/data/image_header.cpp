#include <algorithm>
#include <string>

#include "actors/data/image_file.h"

namespace troupe {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;

/// Bounds-checked reading: past the end everything is zero.
uint32_t byte_at(std::string_view s, size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; }
uint32_t be16(std::string_view s, size_t i) { return byte_at(s, i) << 8 | byte_at(s, i + 1); }
uint32_t be32(std::string_view s, size_t i) { return be16(s, i) << 16 | be16(s, i + 2); }
uint32_t le16(std::string_view s, size_t i) { return byte_at(s, i) | byte_at(s, i + 1) << 8; }
uint32_t le32(std::string_view s, size_t i) { return le16(s, i) | le16(s, i + 2) << 16; }
uint32_t le24(std::string_view s, size_t i) { return le16(s, i) | byte_at(s, i + 2) << 16; }
std::string_view part(std::string_view s, size_t from, size_t size) {
  return from >= s.size() ? std::string_view() : s.substr(from, size);
}

/// The orientation in a TIFF-form Exif block; 1 when it has none that is valid.
int exif_orientation(std::string_view tiff) {
  const bool little = tiff.starts_with("II");
  if (!little && !tiff.starts_with("MM")) return 1;
  const auto u16 = [&](size_t i) { return little ? le16(tiff, i) : be16(tiff, i); };
  const size_t directory = little ? le32(tiff, 4) : be32(tiff, 4);
  const uint32_t entries = u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry + 12 > tiff.size()) break;
    if (u16(entry) != 0x0112) continue;
    const uint32_t value = u16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Result<ImageHeader> jpeg_header(std::string_view s) {
  ImageHeader header{ImageType::kJpeg, 0, 0, 1};
  for (size_t at = 2; at + 4 <= s.size();) {
    if (byte_at(s, at) != 0xFF) return invalid_argument("is a JPEG whose header is damaged");
    const uint32_t marker = byte_at(s, at + 1);
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    const bool standalone = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    if (standalone) {
      at += 2;
      continue;
    }
    const size_t size = be16(s, at + 2);
    const auto body = part(s, at + 4, size < 2 ? 0 : size - 2);
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) {
      header.stored_height = be16(body, 1);
      header.stored_width = be16(body, 3);
    } else if (marker == 0xE1 && header.orientation == 1 && body.starts_with(std::string_view("Exif\0\0", 6))) {
      header.orientation = exif_orientation(body.substr(6));
    } else if (marker == 0xDA) {
      // The end mark may be followed by padding, so it is searched for, from the back; what is embedded before the scan
      // does not count.
      if (s.rfind("\xFF\xD9") == std::string_view::npos || s.rfind("\xFF\xD9") < at)
        return invalid_argument("is a JPEG that is cut off");
      return header;
    } else if (marker == 0xD9) {
      break;
    }
    at += 2 + size;
  }
  return invalid_argument("is a JPEG that is cut off");
}

Result<ImageHeader> png_header(std::string_view s) {
  ImageHeader header{ImageType::kPng, be32(s, 16), be32(s, 20), 1};
  for (size_t at = 8; at + 12 <= s.size();) {
    const size_t size = be32(s, at);
    const auto type = part(s, at + 4, 4);
    if (at + 12 + size > s.size()) break;
    if (type == "eXIf") header.orientation = exif_orientation(s.substr(at + 8, size));
    if (type == "acTL") return invalid_argument("is an animated PNG; a still image is needed");
    if (type == "IEND") return header;
    at += 12 + size;
  }
  return invalid_argument("is a PNG that is cut off");
}

Result<ImageHeader> webp_header(std::string_view s) {
  ImageHeader header{ImageType::kWebp, 0, 0, 1};
  const size_t end = size_t{le32(s, 4)} + 8;
  if (end > s.size()) return invalid_argument("is a WebP file that is cut off");
  for (size_t at = 12; at + 8 <= end;) {
    const auto type = part(s, at, 4);
    const size_t size = le32(s, at + 4), body = at + 8;
    if (type == "VP8X") {
      if (byte_at(s, body) & 0x02u) return invalid_argument("is an animated WebP; a still image is needed");
      header.stored_width = le24(s, body + 4) + 1;
      header.stored_height = le24(s, body + 7) + 1;
    } else if (type == "VP8 " && header.stored_width == 0) {
      header.stored_width = le16(s, body + 6) & 0x3FFFu;
      header.stored_height = le16(s, body + 8) & 0x3FFFu;
    } else if (type == "VP8L" && header.stored_width == 0) {
      const uint32_t bits = le32(s, body + 1);
      header.stored_width = (bits & 0x3FFFu) + 1;
      header.stored_height = (bits >> 14 & 0x3FFFu) + 1;
    } else if (type == "EXIF") {
      auto exif = part(s, body, size);
      if (exif.starts_with(std::string_view("Exif\0\0", 6))) exif.remove_prefix(6);
      header.orientation = exif_orientation(exif);
    }
    at = body + size + (size & 1);
  }
  return header;
}

Result<ImageHeader> header_by_content(std::string_view s) {
  if (s.empty()) return invalid_argument("is empty (0 bytes)");
  if (s.starts_with("\xFF\xD8\xFF")) return jpeg_header(s);
  if (s.starts_with("\x89PNG\r\n\x1A\n")) return png_header(s);
  if (s.starts_with("RIFF") && part(s, 8, 4) == "WEBP") return webp_header(s);
  std::string name = "not an image of a known type";
  if (s.starts_with("GIF8")) name = "a GIF";
  if (s.starts_with("BM")) name = "a BMP";
  if (s.starts_with(std::string_view("II*\0", 4)) || s.starts_with(std::string_view("MM\0*", 4))) name = "a TIFF";
  if (part(s, 4, 8) == "ftypavif") name = "an AVIF";
  if (part(s, 4, 8) == "ftypheic") name = "a HEIC";
  return invalid_argument("is " + name + "; JPEG, PNG and WebP are read");
}

}  // namespace

Result<ImageHeader> read_image_header(std::string_view bytes) {
  TROUPE_ASSIGN(const auto header, header_by_content(bytes));
  const std::string size =
      std::to_string(header.stored_width) + " x " + std::to_string(header.stored_height) + " pixels";
  if (header.stored_width <= 0 || header.stored_height <= 0)
    return invalid_argument("has a header that states " + size);
  if (header.stored_width > kMaxPixels / header.stored_height)
    return invalid_argument("states " + size + ", more than the limit of 2^28");
  return header;
}

}  // namespace troupe
