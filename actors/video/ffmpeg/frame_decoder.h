#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/images/image_file.h"
#include "actors/video/ffmpeg/media_stream.h"
#include "base/result.h"

struct AVCodecContext;
struct AVFrame;
struct SwsContext;

namespace troupe::ffmpeg {

/// Decodes frames of a stream by their times, one thread, one frame at a time. Owner thread only.
class FrameDecoder {
 public:
  /// InvalidArgument when the codec is not read or its parameters do not do. `stream` outlives it.
  static Result<std::unique_ptr<FrameDecoder>> create(MediaStream& stream);
  ~FrameDecoder();
  FrameDecoder(const FrameDecoder&) = delete;
  FrameDecoder& operator=(const FrameDecoder&) = delete;

  /// The frame that is shown at `time`; `key` is the time of the last key frame at or before it. Times ascend from call
  /// to call. DataLoss when it, or one since the key frame, is damaged or missing.
  Result<RgbImage> frame_at(int64_t time, int64_t key);

 private:
  explicit FrameDecoder(MediaStream& stream);
  Status open();
  Status go_to(int64_t key);
  /// The next frame that the codec gives into frame_; false at the end.
  Result<bool> next();
  Status feed();
  /// scaler_ for the frame in frame_.
  Status set_scaler();
  Result<RgbImage> as_rgb();

  MediaStream& stream_;
  AVCodecContext* codec_ = nullptr;
  AVFrame* frame_ = nullptr;
  AVPacket* packet_ = nullptr;
  SwsContext* scaler_ = nullptr;
  int scaled_format_ = 0;        // that scaler_ takes
  bool format_is_full_ = false;  // its range where the frame does not say
  std::vector<uint8_t> line_buffer_;
  bool begun_ = false, ended_ = false;
  int64_t from_ = 0, at_ = 0;  // the key frame that decoding began at, and the last frame that came
};

}  // namespace troupe::ffmpeg
