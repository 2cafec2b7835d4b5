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

}  // namespace troupe::containers
