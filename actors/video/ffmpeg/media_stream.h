#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/video/containers/frame_counts.h"
#include "base/result.h"

struct AVFormatContext;
struct AVIOContext;
struct AVPacket;
struct AVStream;

namespace troupe::ffmpeg {

/// The video of a file in memory, as packets. Owner thread only; the bytes outlive it.
class MediaStream {
 public:
  /// Tells MP4, MOV, Matroska, WebM and AVI by content. InvalidArgument with the reason: another type (by name), a file
  /// that does not parse, no video in it, a codec that is not read.
  static Result<std::unique_ptr<MediaStream>> open(std::string_view bytes);
  ~MediaStream();
  MediaStream(const MediaStream&) = delete;
  MediaStream& operator=(const MediaStream&) = delete;

  /// A frame that decoding gives, in units of the stream's time base.
  struct Frame {
    int64_t time = 0, duration = 0;
    bool key = false;
  };
  /// The frames in the order in which they are shown. Cost: one pass over the file's bytes. InvalidArgument when the
  /// file ends early, has none or more than 2^22, or when they are reordered and have no times.
  Result<std::vector<Frame>> scan();

  /// The next packet of the stream; false at the end of the file. DataLoss when the file cannot be read on.
  Result<bool> read(AVPacket& packet);
  /// Goes to the last place at or before `time` where decoding may begin, or to the beginning where a demuxer tells
  /// other times behind a leap than on its way there (AVI with empty frames). False when there is none. After scan().
  Result<bool> seek(int64_t time);
  /// False once a leap has failed: seek() goes to the beginning from then on.
  bool leaps() const { return leaps_; }
  const AVStream& stream() const { return *stream_; }
  /// Clockwise, by the display matrix: 0 to 3.
  int quarter_turns() const;

 private:
  struct Source;
  MediaStream();
  Status open_source(std::string_view bytes);
  Status choose_stream();
  /// seek() without its other way.
  Result<bool> leap(int64_t time);
  /// Of stream_, by the file's structure.
  HeldFrames held() const;

  std::unique_ptr<Source> source_;
  AVFormatContext* context_ = nullptr;
  AVStream* stream_ = nullptr;
  FrameCounts counts_;
  int64_t first_ = 0;  // time of the frame that is shown first
  bool leaps_ = true;
  std::vector<std::pair<int64_t, int64_t>> starts_;  // where decoding may begin: place in the file, and time
  std::unique_ptr<AVPacket, void (*)(AVPacket*)> ahead_;
  bool is_ahead_ = false;  // ahead_ is what read() gives next
};

/// When a packet or frame is shown; the time of decoding where the container does not say.
int64_t time_of(int64_t shown, int64_t decoded);

}  // namespace troupe::ffmpeg
