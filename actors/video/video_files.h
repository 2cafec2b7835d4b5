#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "actors/images/image_file.h"
#include "base/result.h"

namespace troupe {

/// What a video file says of itself. Sizes are those of the upright picture.
struct VideoHeader {
  int64_t width = 0, height = 0;
  int64_t frames = 0;  // that decoding gives
  double fps = 0;      // on average
};

/// Reads files of video. Const calls are thread-safe; a decoder lives for one call.
class VideoFiles {
 public:
  virtual ~VideoFiles() = default;
  /// Decodes no frame. InvalidArgument with the reason: another type (by name), a header that does not parse, no video
  /// in it, a codec that is not read (by name), a frame of more than kMaxVideoFramePixels, frames of more than
  /// kMaxVideoFilePixels. ResourceExhausted when memory is short. Unimplemented when this build reads no video files.
  virtual Result<VideoHeader> header(std::string_view bytes) const = 0;
  /// Calls `take` for the frames of these numbers (ascending), upright and in RGB. DataLoss when the data are damaged
  /// or end before the last one. Holds a frame and what the codec keeps of others. Errors of `take` are passed on.
  virtual Status decode(std::string_view bytes, const std::vector<int64_t>& numbers,
                        const std::function<Status(const RgbImage&)>& take) const = 0;
  /// Of the library that reads the files, its build included: what header() says may change with it. 0: none.
  virtual uint64_t version() const = 0;
};

/// More pixels a frame are refused: a codec keeps up to 17 of them.
inline constexpr int64_t kMaxVideoFramePixels = int64_t{1} << 26;
/// More pixels in all frames together are refused: any of them may have to be decoded for those that are wanted.
inline constexpr int64_t kMaxVideoFilePixels = int64_t{1} << 42;

/// What the build reads video files with (CMake chooses the target that defines it).
std::unique_ptr<VideoFiles> make_video_files();

}  // namespace troupe
