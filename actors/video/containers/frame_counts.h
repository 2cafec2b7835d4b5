#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Of a stream of video.
struct HeldFrames {
  std::optional<int64_t> frames;  // nothing where an edit list leaves some out
  std::string wrong;              // how the file contradicts itself about them; empty where it does not
};
/// By what the container tells streams apart with: MP4's and MOV's id of the track, AVI's number of the stream,
/// Matroska's place of the track among those of video.
using FrameCounts = std::map<int64_t, HeldFrames>;

/// Follows the file's own structure, which a demuxer that looks for the next thing it knows does not: what is lost
/// there goes unseen. InvalidArgument when it breaks, with the place: a part that is longer than what holds it, or than
/// the file; one of no known kind where frames lie. Cost: the parts' heads, not the frames. Sources: ISO/IEC 14496-12,
/// RFC 8794 and 9559, Microsoft's AVI RIFF and OpenDML 1.02.
Result<FrameCounts> count_frames(std::string_view bytes);

}  // namespace troupe
