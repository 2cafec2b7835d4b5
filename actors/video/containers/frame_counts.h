#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Frames that a file holds of each stream of video, by what its container tells streams apart with: MP4's and MOV's
/// id of the track, AVI's number of the stream, Matroska's place of the track among those of video. One that is not in
/// it is not known.
using FrameCounts = std::map<int64_t, int64_t>;

/// Follows the file's own structure, which a demuxer that looks for the next thing it knows does not: what is lost
/// there goes unseen. InvalidArgument when it breaks, with the place: a part that is longer than what holds it, or than
/// the file; one of no known kind where frames lie; tables that differ in their number of frames. Cost: the parts'
/// heads, not the frames. Sources: ISO/IEC 14496-12, RFC 8794 and 9559, Microsoft's AVI RIFF and OpenDML 1.02.
Result<FrameCounts> count_frames(std::string_view bytes);

}  // namespace troupe
