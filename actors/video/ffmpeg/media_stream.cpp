#include "actors/video/ffmpeg/media_stream.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/display.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "actors/video/container.h"
#include "actors/video/containers/frame_counts.h"
#include "actors/video/ffmpeg/call_error.h"
#include "actors/video/ffmpeg/codecs.h"
#include "actors/video/video_files.h"

namespace troupe::ffmpeg {
namespace {

constexpr int kReadBytes = 1 << 16;
constexpr int64_t kMostFrames = int64_t{1} << 22;
constexpr uint64_t kMostReadings = 4;  // of a file's bytes, by frames that lie in the same ones

std::string foreign_container(std::string_view bytes) {
  if (bytes.empty()) return "is empty (0 bytes)";
  std::string name = "no file of video of a known type";
  if (bytes.starts_with("FLV")) name = "a Flash video";
  if (bytes.starts_with("OggS")) name = "an Ogg file";
  if (bytes.starts_with(std::string_view("\0\0\1\xBA", 4))) name = "an MPEG program stream";
  if (bytes.starts_with("\x30\x26\xB2\x75\x8E\x66\xCF\x11")) name = "a Windows Media file";
  if (bytes.size() > 188 && bytes[0] == 'G' && bytes[188] == 'G') name = "an MPEG transport stream";
  return "is " + name + "; MP4, MOV, MKV, WebM and AVI are read";
}

/// Times of decoding do where frames are shown as they come. B-frames are known by the codec's delay, or by FFmpeg's
/// leaving the times of some frames open.
Error unordered() {
  return invalid_argument(
      "has frames without times that are shown in another order than they are stored (B-frames, which AVI keeps no "
      "times for); valid: the same frames in MP4, MOV or MKV");
}
Error too_many_frames() { return invalid_argument("has more frames than the limit of 2^22"); }

constexpr size_t kMatrixBytes = 9 * sizeof(int32_t);

// FFmpeg 6.1 moved what containers say beside the codec.
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
const int32_t* display_matrix(AVStream& stream) {
  const AVCodecParameters& stated = *stream.codecpar;
  const AVPacketSideData* matrix =
      av_packet_side_data_get(stated.coded_side_data, stated.nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return matrix != nullptr && matrix->size >= kMatrixBytes ? reinterpret_cast<const int32_t*>(matrix->data) : nullptr;
}
#else
const int32_t* display_matrix(AVStream& stream) {
  size_t size = 0;
  const uint8_t* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  return matrix != nullptr && size >= kMatrixBytes ? reinterpret_cast<const int32_t*>(matrix) : nullptr;
}
#endif

/// A packet that decoding gives a frame for. FFmpeg marks those outside of an edit; VP8's have a bit for those that are
/// only leaned on.
bool is_shown(const AVPacket& packet, AVCodecID codec) {
  constexpr uint8_t kShowFrame = 0x10;
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;
  return codec != AV_CODEC_ID_VP8 || packet.size == 0 || (packet.data[0] & kShowFrame) != 0;
}

/// For each stream what its probing may take.
Status set_options(std::vector<AVDictionary*>& options) {
  for (AVDictionary*& option : options) {
    int set = av_dict_set_int(&option, "max_pixels", kMaxVideoFramePixels, 0);
    if (set >= 0) set = av_dict_set_int(&option, "threads", 1, 0);
    if (set < 0) return call_error(set, ErrorCode::kInternal, "cannot be read");
  }
  return {};
}

}  // namespace

int64_t time_of(int64_t shown, int64_t decoded) { return shown == AV_NOPTS_VALUE ? decoded : shown; }

/// Bytes in memory as FFmpeg reads them.
struct MediaStream::Source {
  std::string_view bytes;
  size_t at = 0;
  AVIOContext* io = nullptr;

  static int read(void* self, uint8_t* to, int size) {
    auto& source = *static_cast<Source*>(self);
    const size_t count = std::min(static_cast<size_t>(size), source.bytes.size() - source.at);
    if (count == 0) return AVERROR_EOF;
    std::memcpy(to, source.bytes.data() + source.at, count);
    source.at += count;
    return static_cast<int>(count);
  }
  static int64_t seek(void* self, int64_t offset, int whence) {
    auto& source = *static_cast<Source*>(self);
    const auto size = static_cast<int64_t>(source.bytes.size());
    if ((whence & AVSEEK_SIZE) != 0) return size;
    const int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? static_cast<int64_t>(source.at) : size;
    if (offset < -from || offset > size - from) return AVERROR(EINVAL);
    source.at = static_cast<size_t>(from + offset);
    return from + offset;
  }
  ~Source() {
    if (io == nullptr) return;
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
};

MediaStream::MediaStream()
    : source_(std::make_unique<Source>()), ahead_(av_packet_alloc(), [](AVPacket* p) { av_packet_free(&p); }) {}
MediaStream::~MediaStream() { avformat_close_input(&context_); }

Result<std::unique_ptr<MediaStream>> MediaStream::open(std::string_view bytes) {
  std::unique_ptr<MediaStream> made(new MediaStream());
  TROUPE_RETURN_IF_ERROR(made->open_source(bytes));
  TROUPE_RETURN_IF_ERROR(made->choose_stream());
  return made;
}

Status MediaStream::open_source(std::string_view bytes) {
  const char* container = video_container_of(bytes);
  if (container == nullptr) return invalid_argument(foreign_container(bytes));
  TROUPE_ASSIGN(counts_, count_frames(bytes));
  source_->bytes = bytes;
  auto* buffer = static_cast<uint8_t*>(av_malloc(kReadBytes));
  if (buffer == nullptr) return out_of_memory("cannot be read");
  source_->io = avio_alloc_context(buffer, kReadBytes, 0, source_.get(), Source::read, nullptr, Source::seek);
  if (source_->io == nullptr) av_free(buffer);
  context_ = avformat_alloc_context();
  if (source_->io == nullptr || context_ == nullptr || ahead_ == nullptr) return out_of_memory("cannot be read");
  context_->pb = source_->io;
  context_->flags |= AVFMT_FLAG_CUSTOM_IO;
  // A file that names others gets none of them.
  context_->io_open = [](AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EACCES); };
  context_->codec_whitelist = av_strdup(kCodecs);
  if (context_->codec_whitelist == nullptr) return out_of_memory("cannot be read");
  const int opened = avformat_open_input(&context_, nullptr, av_find_input_format(container), nullptr);
  if (opened < 0) return call_error(opened, ErrorCode::kInvalidArgument, "cannot be read");
  return {};
}

Status MediaStream::choose_stream() {
  std::vector<AVDictionary*> options(context_->nb_streams, nullptr);
  const Status set = set_options(options);
  const int found = set.ok() ? avformat_find_stream_info(context_, options.data()) : 0;
  for (AVDictionary*& option : options) av_dict_free(&option);
  TROUPE_RETURN_IF_ERROR(set);
  if (found < 0) return call_error(found, ErrorCode::kInvalidArgument, "cannot be read");
  const int best = av_find_best_stream(context_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (best < 0 || (context_->streams[best]->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0)
    return invalid_argument("holds no video");
  stream_ = context_->streams[best];
  for (unsigned int i = 0; i < context_->nb_streams; ++i)
    if (context_->streams[i] != stream_) context_->streams[i]->discard = AVDISCARD_ALL;
  const AVCodecID codec = stream_->codecpar->codec_id;
  const AVCodec* decoder = avcodec_find_decoder(codec);
  if (decoder == nullptr || av_match_list(decoder->name, kCodecs, ',') == 0)
    return invalid_argument("is coded as " + std::string(avcodec_get_name(codec)) + ", which is not read");
  return {};
}

HeldFrames MediaStream::held() const {
  const std::string_view container = context_->iformat->name;
  int64_t key = container.starts_with("mov") ? stream_->id : stream_->index;
  if (container.starts_with("matroska")) {
    key = 0;
    for (int i = 0; i < stream_->index; ++i) {
      const AVStream& before = *context_->streams[i];
      key +=
          before.codecpar->codec_type == AVMEDIA_TYPE_VIDEO && (before.disposition & AV_DISPOSITION_ATTACHED_PIC) == 0;
    }
  }
  const auto found = counts_.find(key);
  return found == counts_.end() ? HeldFrames() : found->second;
}

Result<std::vector<MediaStream::Frame>> MediaStream::scan() {
  const bool counted = std::string_view(context_->iformat->name).starts_with("mov");  // the others' number is a guess
  if (counted && (stream_->nb_frames > kMostFrames || avformat_index_get_entries_count(stream_) > kMostFrames))
    return too_many_frames();
  // Its frames lie one behind the other, and may be packed; those of others are where a table says.
  const bool packs = std::string_view(context_->iformat->name).starts_with("matroska");
  std::vector<Frame> frames;
  int64_t packets = 0, timeless = 0;
  uint64_t sizes = 0;  // of packets, in bytes
  AVPacket* packet = av_packet_alloc();
  if (packet == nullptr) return out_of_memory("cannot be read");
  const std::unique_ptr<AVPacket, void (*)(AVPacket*)> owner(packet, [](AVPacket* p) { av_packet_free(&p); });
  while (true) {
    TROUPE_ASSIGN(const bool more, read(*packet));
    if (!more) break;
    ++packets;
    sizes += static_cast<uint64_t>(packet->size);
    const Frame frame{time_of(packet->pts, packet->dts), packet->duration, (packet->flags & AV_PKT_FLAG_KEY) != 0};
    const bool shown = is_shown(*packet, stream_->codecpar->codec_id);
    if (frame.key || packets == 1) starts_.emplace_back(packet->pos, frame.time);
    const bool cut = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0, timed = packet->pts != AV_NOPTS_VALUE;
    av_packet_unref(packet);
    if (!packs && sizes / kMostReadings > source_->bytes.size())
      return invalid_argument("has frames that lie in the same bytes: together they are more than " +
                              std::to_string(kMostReadings) + " times as large as the file");
    if (cut) return invalid_argument("ends in the middle of frame " + std::to_string(packets));
    if (!shown) continue;
    if (frame.time == AV_NOPTS_VALUE) return invalid_argument("has a frame without a time");
    timeless += !timed;
    frames.push_back(frame);
    if (std::ssize(frames) > kMostFrames) return too_many_frames();
  }
  if (frames.empty()) return invalid_argument("holds no frame");
  // Of what an edit list leaves, not of all frames that are stated.
  const int64_t indexed = counted ? avformat_index_get_entries_count(stream_) : 0;
  if (packets < indexed)
    return invalid_argument("ends early: it states " + std::to_string(indexed) + " frames and has " +
                            std::to_string(packets));
  const HeldFrames stated = held();
  if (!stated.wrong.empty()) return invalid_argument(stated.wrong);
  if (stated.frames && *stated.frames != packets)
    return invalid_argument("is damaged: it holds " + std::to_string(*stated.frames) + " frames, and " +
                            std::to_string(packets) + " come out of it");
  if (timeless > 0 && (timeless < std::ssize(frames) || stream_->codecpar->video_delay > 0)) return unordered();
  std::stable_sort(frames.begin(), frames.end(), [](const Frame& a, const Frame& b) { return a.time < b.time; });
  const auto twin =
      std::adjacent_find(frames.begin(), frames.end(), [](const Frame& a, const Frame& b) { return a.time == b.time; });
  if (twin != frames.end())
    return invalid_argument("has two frames at one time, frame " + std::to_string(twin - frames.begin()) +
                            " and the next, which cannot be told apart");
  std::sort(starts_.begin(), starts_.end());
  first_ = frames[0].time;
  return frames;
}

Result<bool> MediaStream::read(AVPacket& packet) {
  if (std::exchange(is_ahead_, false)) {
    av_packet_move_ref(&packet, ahead_.get());
    return true;
  }
  while (true) {
    const int got = av_read_frame(context_, &packet);
    if (got == AVERROR_EOF) return false;
    if (got < 0) return call_error(got, ErrorCode::kDataLoss, "cannot be read on");
    if (packet.stream_index == stream_->index) return true;
    av_packet_unref(&packet);
  }
}

Result<bool> MediaStream::seek(int64_t time) {
  if (leaps_) {
    TROUPE_ASSIGN(leaps_, leap(time));
  }
  return leaps_ ? true : leap(first_);
}

Result<bool> MediaStream::leap(int64_t time) {
  av_packet_unref(ahead_.get());
  is_ahead_ = false;
  const int leapt = avformat_seek_file(context_, stream_->index, INT64_MIN, time, time, 0);
  if (leapt == AVERROR(ENOMEM)) return out_of_memory("cannot be read on");
  if (leapt < 0) return false;
  TROUPE_ASSIGN(is_ahead_, read(*ahead_));
  if (!is_ahead_) return false;
  return std::binary_search(starts_.begin(), starts_.end(), std::pair(ahead_->pos, time_of(ahead_->pts, ahead_->dts)));
}

int MediaStream::quarter_turns() const {
  const int32_t* matrix = display_matrix(*stream_);
  if (matrix == nullptr) return 0;
  const double turns = -av_display_rotation_get(matrix) / 90;
  if (std::isnan(turns)) return 0;
  return (static_cast<int>(std::lround(turns)) % 4 + 4) % 4;
}

}  // namespace troupe::ffmpeg
