#include "actors/video/container.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace troupe {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

/// EBML's number of 1 to 8 bytes at `at`, which moves behind it; its bits all set stand for an unknown size.
std::optional<uint64_t> ebml_size(std::string_view bytes, size_t& at) {
  if (at >= bytes.size() || bytes[at] == 0) return {};
  const int width = std::countl_zero(static_cast<uint8_t>(bytes[at])) + 1;
  if (bytes.size() - at < static_cast<size_t>(width)) return {};
  uint64_t value = static_cast<uint8_t>(bytes[at]) & (0xFFU >> width);
  for (int i = 1; i < width; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
  at += static_cast<size_t>(width);
  return value == (uint64_t{1} << (7 * width)) - 1 ? kUnknown : value;
}

/// To the end of the segment, behind the header.
uint64_t matroska_bytes(std::string_view bytes) {
  constexpr std::string_view kSegment = "\x18\x53\x80\x67";
  size_t at = 4;
  const auto header = ebml_size(bytes, at);
  if (!header || *header > bytes.size() - at) return 0;
  at += static_cast<size_t>(*header);
  constexpr std::string_view kVoid = "\xEC", kChecksum = "\xBF";
  while (at < bytes.size() && (bytes.substr(at, 1) == kVoid || bytes.substr(at, 1) == kChecksum)) {
    const auto skipped = ebml_size(bytes, ++at);
    if (!skipped || *skipped > bytes.size() - at) return 0;
    at += static_cast<size_t>(*skipped);
  }
  if (bytes.substr(std::min(at, bytes.size()), 4) != kSegment) return 0;
  at += 4;
  const auto segment = ebml_size(bytes, at);
  return segment && *segment != kUnknown ? at + *segment : 0;
}

/// To the end of the first list: large files have more of them.
uint64_t avi_bytes(std::string_view bytes) {
  uint64_t size = 0;
  for (size_t i = 0; i < 4; ++i) size |= uint64_t{static_cast<uint8_t>(bytes[4 + i])} << (8 * i);
  return size == 0 || size == UINT32_MAX ? 0 : size;  // some writers count the 8 bytes before, others do not
}

}  // namespace

uint64_t stated_bytes(std::string_view bytes) {
  const char* container = video_container_of(bytes);
  if (container == nullptr || container == std::string_view("mov")) return 0;
  return container == std::string_view("avi") ? avi_bytes(bytes) : matroska_bytes(bytes);
}

const char* video_container_of(std::string_view bytes) {
  if (bytes.starts_with("\x1A\x45\xDF\xA3")) return "matroska";
  if (bytes.size() < 12) return nullptr;
  if (bytes.starts_with("RIFF") && bytes.substr(8, 4) == "AVI ") return "avi";
  for (const std::string_view box : {"ftyp", "moov", "mdat", "wide", "free", "skip"})
    if (bytes.substr(4, 4) == box) return "mov";
  return nullptr;
}

bool looks_like_video_data(std::string_view bytes) {
  if (video_container_of(bytes) != nullptr) return true;
  if (bytes.size() > 376 && bytes[0] == 'G' && bytes[188] == 'G' && bytes[376] == 'G') return true;  // MPEG-TS
  for (const std::string_view begin : {std::string_view("FLV\1", 4), std::string_view("OggS", 4),
                                       std::string_view("\0\0\1\xBA", 4), std::string_view("\x30\x26\xB2\x75", 4)})
    if (bytes.starts_with(begin)) return true;
  return false;
}

}  // namespace troupe
