#include "actors/video/video_files.h"

namespace troupe {
namespace {

/// Of a build without a decoder.
class RefusedFiles final : public VideoFiles {
 public:
  Result<VideoHeader> header(std::string_view) const override { return why(); }
  Status decode(std::string_view, const std::vector<int64_t>&,
                const std::function<Status(const RgbImage&)>&) const override {
    return why();
  }
  uint64_t version() const override { return 0; }

 private:
  static Error why() {
    return make_error(
        ErrorCode::kUnimplemented,
        "is a file of video, and this build was made without FFmpeg; valid: the video as a list of frames, "
        "or a build with FFmpeg's libraries");
  }
};

}  // namespace

std::unique_ptr<VideoFiles> make_video_files() { return std::make_unique<RefusedFiles>(); }

}  // namespace troupe
