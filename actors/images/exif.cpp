#include "actors/images/exif.h"

#include <optional>

#include "actors/images/byte_reader.h"

namespace troupe {
namespace {

constexpr uint32_t kOrientation = 0x0112;

/// The value of a directory's entry; 0 for several values, and for what takes more room than the entry has.
uint32_t single_value(const bytes::Ordered& tiff, size_t entry) {
  const uint32_t type = tiff.u16(entry + 2);
  if (tiff.u32(entry + 4) != 1) return 0;
  if (type == 3 || type == 8) return tiff.u16(entry + 8);
  if (type == 4 || type == 9 || type == 13) return tiff.u32(entry + 8);
  return type == 6 ? bytes::at(tiff.data, entry + 8) : 0;
}

/// Nothing when the block has no such entry.
std::optional<uint32_t> in_exif(std::string_view block) {
  constexpr std::string_view kMark("Exif\0\0", 6);
  for (int i = 0; i < 2 && block.starts_with(kMark); ++i) block.remove_prefix(kMark.size());
  const bytes::Ordered tiff{block, block.starts_with("II")};
  if (!tiff.little && !block.starts_with("MM")) return std::nullopt;
  const size_t directory = tiff.u32(4);
  const uint32_t entries = tiff.u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry + 12 > block.size()) break;
    const bool has_value = tiff.u16(entry + 2) >= 1 && tiff.u16(entry + 2) <= 16 && tiff.u32(entry + 4) > 0;
    if (tiff.u16(entry) == kOrientation && has_value) return single_value(tiff, entry);
  }
  return std::nullopt;
}

/// As an attribute or an element.
std::optional<uint32_t> in_xmp(std::string_view packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = packet.find(kName); at != std::string_view::npos; at = packet.find(kName, at + 1)) {
    std::string_view rest = packet.substr(at + kName.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('>')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return static_cast<uint32_t>(rest[0] - '0');
  }
  return std::nullopt;
}

}  // namespace

int stated_orientation(std::string_view exif, std::string_view xmp) {
  std::optional<uint32_t> value = in_exif(exif);
  if (!value) value = in_xmp(xmp);
  return value && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 1;
}

}  // namespace troupe
