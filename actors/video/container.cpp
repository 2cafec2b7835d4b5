#include "actors/video/container.h"

namespace troupe {

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
