#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/video/containers/frame_counts.h"

/// What count_frames() does for each container; `bytes` begin as it does.
namespace troupe::containers {

Result<FrameCounts> count_mp4(std::string_view bytes);
Result<FrameCounts> count_matroska(std::string_view bytes);
Result<FrameCounts> count_avi(std::string_view bytes);

/// The file ends before `stated`, the byte that it goes to by its own words.
Error ends_early(uint64_t stated, std::string_view bytes);
/// What stands at `at` is not what must be there.
Error breaks_at(uint64_t at, const std::string& how);
/// A part of it, from `at` to `end`, within what holds it to `limit`: the two errors above, as the whole file or only
/// the part is too short.
Status fits(uint64_t at, uint64_t end, uint64_t limit, std::string_view bytes);

/// Nothing but zeros from `at` to `end`.
bool is_padding(std::string_view bytes, size_t at, size_t end);

inline constexpr size_t kMostTracks = 1000;
/// The file has more.
Error too_many_tracks(uint64_t at);

}  // namespace troupe::containers
