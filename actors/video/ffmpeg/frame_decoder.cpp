#include "actors/video/ffmpeg/frame_decoder.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/mem.h>
#include <libswscale/swscale.h>
}

#include <string>

#include "actors/images/pixel_forms.h"
#include "actors/video/ffmpeg/call_error.h"
#include "actors/video/ffmpeg/codecs.h"
#include "actors/video/video_files.h"

namespace troupe::ffmpeg {
namespace {

constexpr int kLineBlock = 64;                 // pixels
constexpr int kOrientations[] = {1, 6, 3, 8};  // Exif's, by clockwise quarter turns

Error damaged(const std::string& how) { return data_loss("is damaged: " + how); }

}  // namespace

FrameDecoder::FrameDecoder(MediaStream& stream)
    : stream_(stream), frame_(av_frame_alloc()), packet_(av_packet_alloc()) {}

FrameDecoder::~FrameDecoder() {
  sws_freeContext(scaler_);
  av_packet_free(&packet_);
  av_frame_free(&frame_);
  avcodec_free_context(&codec_);
}

Result<std::unique_ptr<FrameDecoder>> FrameDecoder::create(MediaStream& stream) {
  std::unique_ptr<FrameDecoder> made(new FrameDecoder(stream));
  TROUPE_RETURN_IF_ERROR(made->open());
  return made;
}

Status FrameDecoder::open() {
  const AVCodecParameters* parameters = stream_.stream().codecpar;
  const AVCodec* decoder = avcodec_find_decoder(parameters->codec_id);
  const std::string name = avcodec_get_name(parameters->codec_id);
  if (decoder == nullptr) return invalid_argument("is coded as " + name + ", which is not read");
  const std::string fails = "is coded as " + name + ", whose decoder does not open";
  codec_ = avcodec_alloc_context3(decoder);
  if (codec_ == nullptr || frame_ == nullptr || packet_ == nullptr) return out_of_memory(fails);
  const int taken = avcodec_parameters_to_context(codec_, parameters);
  if (taken < 0) return call_error(taken, ErrorCode::kInvalidArgument, fails);
  codec_->codec_whitelist = av_strdup(kCodecs);
  if (codec_->codec_whitelist == nullptr) return out_of_memory(fails);
  codec_->pkt_timebase = stream_.stream().time_base;
  codec_->thread_count = 1;
  codec_->max_pixels = kMaxVideoFramePixels;
  codec_->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;
  const int opened = avcodec_open2(codec_, decoder, nullptr);
  if (opened < 0) return call_error(opened, ErrorCode::kInvalidArgument, fails);
  return {};
}

Result<RgbImage> FrameDecoder::frame_at(int64_t time, int64_t key) {
  // A key frame ahead saves what lies before it, where there is a way to it.
  if (!begun_ || (stream_.leaps() && key > at_ && key > from_)) TROUPE_RETURN_IF_ERROR(go_to(key));
  while (true) {
    TROUPE_ASSIGN(const bool more, next());
    if (!more) return damaged("it ends before the frame at " + std::to_string(time));
    at_ = time_of(frame_->best_effort_timestamp, frame_->pkt_dts);
    if (at_ < from_) continue;  // it leans on frames before the key frame
    if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0)
      return damaged("the frame at " + std::to_string(at_));
    if (at_ == time) return as_rgb();
    if (at_ > time) return damaged("the frame at " + std::to_string(time) + " does not come");
  }
}

Status FrameDecoder::go_to(int64_t key) {
  TROUPE_ASSIGN(const bool there, stream_.seek(key));
  if (!there) return damaged("there is no way to its frame at " + std::to_string(key));
  avcodec_flush_buffers(codec_);
  begun_ = true;
  ended_ = false;
  from_ = at_ = key;
  return {};
}

Result<bool> FrameDecoder::next() {
  while (true) {
    const int got = avcodec_receive_frame(codec_, frame_);
    if (got == 0) return true;
    if (got == AVERROR_EOF) return false;
    if (got != AVERROR(EAGAIN)) return call_error(got, ErrorCode::kDataLoss, "is damaged");
    TROUPE_RETURN_IF_ERROR(feed());
  }
}

Status FrameDecoder::feed() {
  if (ended_) return damaged("it ends in the middle of a frame");
  TROUPE_ASSIGN(const bool more, stream_.read(*packet_));
  ended_ = !more;
  const int64_t time = more ? time_of(packet_->pts, packet_->dts) : 0;
  const int sent = avcodec_send_packet(codec_, more ? packet_ : nullptr);
  if (more) av_packet_unref(packet_);
  if (sent < 0 && (time >= from_ || sent == AVERROR(ENOMEM)))
    return call_error(sent, ErrorCode::kDataLoss, "is damaged: at " + std::to_string(time));
  return {};
}

Status FrameDecoder::set_scaler() {
  int *inverse = nullptr, *table = nullptr, from_full = 0, to_full = 0, brightness = 0, contrast = 0, saturation = 0;
  const bool fresh = scaler_ == nullptr || scaled_format_ != frame_->format;
  if (fresh) {
    const auto format = static_cast<AVPixelFormat>(frame_->format);
    if (sws_isSupportedInput(format) == 0) return damaged("its pixels are of a form that is not read");
    sws_freeContext(scaler_);
    scaler_ = sws_getContext(frame_->width, frame_->height, format, frame_->width, frame_->height, AV_PIX_FMT_RGB24,
                             SWS_BILINEAR, nullptr, nullptr, nullptr);
    if (scaler_ == nullptr) return out_of_memory("cannot be converted to RGB");
    scaled_format_ = frame_->format;
  }
  sws_getColorspaceDetails(scaler_, &inverse, &from_full, &table, &to_full, &brightness, &contrast, &saturation);
  if (fresh) format_is_full_ = from_full != 0;
  // The frame's word, else what its format stands for; never what the frame before it had.
  const bool stated = frame_->color_range == AVCOL_RANGE_JPEG || frame_->color_range == AVCOL_RANGE_MPEG;
  const bool full = stated ? frame_->color_range == AVCOL_RANGE_JPEG : format_is_full_;
  const int* matrix = sws_getCoefficients(frame_->colorspace);
  sws_setColorspaceDetails(scaler_, matrix, full ? 1 : 0, matrix, to_full, brightness, contrast, saturation);
  return {};
}

Result<RgbImage> FrameDecoder::as_rgb() {
  const AVCodecParameters& stated = *stream_.stream().codecpar;
  if (frame_->width != stated.width || frame_->height != stated.height)
    return damaged("a frame is " + std::to_string(frame_->width) + " x " + std::to_string(frame_->height) +
                   " pixels, the file states " + std::to_string(stated.width) + " x " + std::to_string(stated.height));
  TROUPE_RETURN_IF_ERROR(set_scaler());
  // Its fast ways leave out what does not fill a block at the end of a line unless there is room behind it.
  const int stride = 3 * ((frame_->width + kLineBlock - 1) / kLineBlock * kLineBlock);
  line_buffer_.resize(static_cast<size_t>(stride) * static_cast<size_t>(frame_->height));
  uint8_t* rows[] = {line_buffer_.data()};
  if (sws_scale(scaler_, frame_->data, frame_->linesize, 0, frame_->height, rows, &stride) != frame_->height)
    return damaged("a frame cannot be converted");
  RgbImage image{frame_->width, frame_->height, {}};
  image.pixels.reserve(static_cast<size_t>(3 * frame_->width) * static_cast<size_t>(frame_->height));
  for (int y = 0; y < frame_->height; ++y) {
    const auto line = line_buffer_.begin() + static_cast<ptrdiff_t>(y) * stride;
    image.pixels.insert(image.pixels.end(), line, line + 3 * frame_->width);
  }
  av_frame_unref(frame_);
  return upright(std::move(image), kOrientations[stream_.quarter_turns()]);
}

}  // namespace troupe::ffmpeg
