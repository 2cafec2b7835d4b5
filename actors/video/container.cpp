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

}  // namespace troupe
