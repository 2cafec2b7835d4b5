#include "actors/video/containers/frame_counts.h"

#include <algorithm>

#include "actors/video/container.h"
#include "actors/video/containers/walks.h"

namespace troupe {
namespace containers {

Error ends_early(uint64_t stated, std::string_view bytes) {
  return invalid_argument("ends early: it states " + std::to_string(stated) + " bytes and has " +
                          std::to_string(bytes.size()));
}

Error breaks_at(uint64_t at, const std::string& how) {
  return invalid_argument("is damaged: at byte " + std::to_string(at) + " " + how);
}

Status fits(uint64_t at, uint64_t end, uint64_t limit, std::string_view bytes) {
  if (end <= limit) return {};
  if (limit >= bytes.size()) return ends_early(end, bytes);
  return breaks_at(at, "begins a part that is longer than what it is in");
}

bool is_padding(std::string_view bytes, size_t at, size_t end) {
  return std::ranges::all_of(bytes.substr(std::min(at, bytes.size()), end - std::min(at, end)),
                             [](char c) { return c == '\0'; });
}

Error too_many_tracks(uint64_t at) { return breaks_at(at, "stands one track more than the limit of 1000"); }

}  // namespace containers

Result<FrameCounts> count_frames(std::string_view bytes) {
  const char* container = video_container_of(bytes);
  if (container == nullptr) return invalid_argument("is no file of video of a known type");
  if (container == std::string_view("mov")) return containers::count_mp4(bytes);
  return container == std::string_view("avi") ? containers::count_avi(bytes) : containers::count_matroska(bytes);
}

}  // namespace troupe
