extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
}

#include <xxhash.h>

#include <algorithm>
#include <string>

#include "actors/video/ffmpeg/call_error.h"
#include "actors/video/ffmpeg/frame_decoder.h"
#include "actors/video/ffmpeg/media_stream.h"
#include "actors/video/video_files.h"

namespace troupe {
namespace {

using ffmpeg::FrameDecoder;
using ffmpeg::MediaStream;

/// What the frames together say of length and rate, as torchcodec's exact mode counts them.
Result<double> rate_of(const std::vector<MediaStream::Frame>& frames, AVRational base) {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const auto& frame : frames) {
    int64_t last = 0;
    if (__builtin_add_overflow(frame.time, frame.duration, &last))
      return invalid_argument("has a frame without an end");
    begin = std::min(begin, frame.time);
    end = std::max(end, last);
  }
  const auto seconds = [&](int64_t time) { return static_cast<double>(time) * base.num / base.den; };
  const double length = seconds(end) - seconds(begin);
  if (!(length > 0)) return invalid_argument("has no length");
  return static_cast<double>(frames.size()) / length;
}

class FfmpegFiles final : public VideoFiles {
 public:
  Result<VideoHeader> header(std::string_view bytes) const override {
    TROUPE_ASSIGN(const auto stream, MediaStream::open(bytes));
    const AVCodecParameters& stated = *stream->stream().codecpar;
    const std::string size = std::to_string(stated.width) + " x " + std::to_string(stated.height) + " pixels";
    if (stated.width <= 0 || stated.height <= 0) return invalid_argument("states frames of " + size);
    if (stated.width > kMaxVideoFramePixels / stated.height)
      return invalid_argument("states frames of " + size + ", more than the limit of 2^26");
    TROUPE_RETURN_IF_ERROR(FrameDecoder::create(*stream));
    TROUPE_ASSIGN(const auto frames, stream->scan());
    const int64_t pixels = int64_t{stated.width} * stated.height;
    if (std::ssize(frames) > kMaxVideoFilePixels / pixels)
      return invalid_argument("has " + std::to_string(frames.size()) + " frames of " + size +
                              ", more than the limit of 2^42 together");
    VideoHeader header{stated.width, stated.height, static_cast<int64_t>(frames.size()), 0};
    if (stream->quarter_turns() % 2 != 0) std::swap(header.width, header.height);
    TROUPE_ASSIGN(header.fps, rate_of(frames, stream->stream().time_base));
    return header;
  }

  Status decode(std::string_view bytes, const std::vector<int64_t>& numbers,
                const std::function<Status(const RgbImage&)>& take) const override {
    TROUPE_ASSIGN(const auto stream, MediaStream::open(bytes));
    TROUPE_ASSIGN(const auto frames, stream->scan());
    TROUPE_ASSIGN(const auto decoder, FrameDecoder::create(*stream));
    int64_t key = frames[0].time;
    size_t at = 0;
    for (const int64_t number : numbers) {
      if (number < 0 || static_cast<size_t>(number) >= frames.size())
        return data_loss("has no frame " + std::to_string(number) + "; there are " + std::to_string(frames.size()));
      for (; at <= static_cast<size_t>(number); ++at)
        if (frames[at].key) key = frames[at].time;
      TROUPE_ASSIGN(const RgbImage image, decoder->frame_at(frames[static_cast<size_t>(number)].time, key));
      TROUPE_RETURN_IF_ERROR(take(image));
    }
    return {};
  }

  uint64_t version() const override {
    const std::string said = std::to_string(avformat_version()) + " " + std::to_string(avcodec_version()) + " " +
                             av_version_info() + " " + avcodec_configuration();
    return XXH3_64bits(said.data(), said.size());
  }
};

}  // namespace

std::unique_ptr<VideoFiles> make_video_files() {
  av_log_set_level(AV_LOG_QUIET);  // what is wrong is said by the errors
  av_max_alloc(ffmpeg::kMaxAllocationBytes);
  return std::make_unique<FfmpegFiles>();
}

}  // namespace troupe
