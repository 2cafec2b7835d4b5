#include "actors/images/exif.h"

#include "actors/images/byte_reader.h"

namespace troupe {

int exif_orientation(std::string_view block) {
  if (block.starts_with(std::string_view("Exif\0\0", 6))) block.remove_prefix(6);
  const bytes::Ordered tiff{block, block.starts_with("II")};
  if (!tiff.little && !block.starts_with("MM")) return 1;
  const size_t directory = tiff.u32(4);
  const uint32_t entries = tiff.u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry + 12 > block.size()) break;
    if (tiff.u16(entry) != 0x0112) continue;
    const uint32_t value = tiff.u16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace troupe
