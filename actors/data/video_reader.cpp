#include "actors/data/video_reader.h"

#include "actors/data/record_videos.h"
#include "actors/sources/inline_data.h"

namespace troupe {
namespace {

constexpr int64_t kMaxFrames = int64_t{1} << 16;       // of a video that the model sees
constexpr double kMaxSeconds = 1 << 24;                // of a video, about half a year
constexpr int64_t kMaxVideoPixels = int64_t{1} << 30;  // of these frames together, scaled

std::string size_text(ImageSize size) { return std::to_string(size.width) + " x " + std::to_string(size.height); }

/// `between`: what stands between the video's name and the message, a colon where a frame's name comes.
Error named(const RecordVideo& video, Error error, const char* between = " ") {
  error.message = video_name(video) + between + error.message;
  return error;
}
Error within(const RecordVideo& video, Error error) { return named(video, std::move(error), ": "); }
template <typename T>
Result<T> named(const RecordVideo& video, Result<T> result, const char* between = " ") {
  if (result.ok()) return result;
  return named(video, result.error(), between);
}

}  // namespace

std::string video_name(const RecordVideo& video) {
  if (video.is_file()) return "video " + shown_path(video.file.path);
  return "the video of " + std::to_string(video.frames.size()) + " frames from " + shown_path(video.frames[0].path) +
         " on";
}

Result<VideoReader::Look> VideoReader::look_at_frames(const PictureRoot& root, const RecordVideo& video) const {
  Look look;
  look.frames = static_cast<int64_t>(video.frames.size());
  look.fps = rate_of_list(video);
  for (const auto& frame : video.frames) {
    TROUPE_ASSIGN(const auto file, open_medium(root, frame));
    const auto header = read_image_header(file.bytes());
    if (!header.ok()) return make_error(header.error().code, image_name(frame.path) + " " + header.error().message);
    const ImageSize size{header->height(), header->width()};
    if (&frame == &video.frames[0]) look.size = size;
    if (size.height != look.size.height || size.width != look.size.width)
      return invalid_argument(image_name(frame.path) + " is " + size_text(size) + " pixels, the first one " +
                              size_text(look.size) + "; the frames of a video have one size");
  }
  return look;
}

Result<VideoReader::Look> VideoReader::look_at_file(std::string_view bytes, const RecordVideo& video) const {
  if (read_image_header(bytes).ok()) return invalid_argument(std::string("is a picture; ") + kHowFramesAreWritten);
  TROUPE_ASSIGN(const VideoHeader header, files_->header(bytes));
  FrameSampling sampling = settings_.sampling;
  if (video.fps > 0) sampling.fps = video.fps;
  TROUPE_ASSIGN(SampledFrames sampled,
                sample_frames(header.frames, header.fps, sampling, settings_.temporal_patch_size));
  Look look;
  look.size = {header.height, header.width};
  look.frames = static_cast<int64_t>(sampled.numbers.size());
  look.fps = sampled.fps;
  look.numbers = std::move(sampled.numbers);
  return look;
}

Result<IndexedImage> VideoReader::grid_of_look(const Look& look) const {
  if (look.frames > kMaxFrames)
    return invalid_argument("has " + std::to_string(look.frames) + " frames, more than the limit of 2^16");
  TROUPE_ASSIGN(const ImageSize scaled, scaled_size(look.size, settings_.patch_size * settings_.merge_size,
                                                    settings_.min_pixels, settings_.max_pixels_of(look.frames)));
  const int64_t pair = settings_.temporal_patch_size;
  IndexedImage grid = grid_of(scaled, settings_.patch_size);
  grid.t = static_cast<int32_t>((look.frames + pair - 1) / pair);
  if (grid.t * pair > kMaxVideoPixels / (scaled.height * scaled.width))
    return invalid_argument("has " + std::to_string(look.frames) + " frames of " + size_text(scaled) +
                            " pixels after scaling, more than the limit of 2^30 together; valid: lower "
                            "data.video.max_frames or data.video.max_pixels");
  grid.kind = MediumKind::kVideo;
  grid.seconds = static_cast<float>(static_cast<double>(pair) / look.fps);
  if (!(static_cast<double>(grid.seconds) * grid.t <= kMaxSeconds))
    return invalid_argument("lasts longer than the limit of 2^24 seconds");
  return grid;
}

Result<MediaBytes> VideoReader::open_file(const PictureRoot& root, const RecordVideo& video) const {
  return open_medium(root, video.file, "video");
}

Result<IndexedImage> VideoReader::grid(const PictureRoot& root, const RecordVideo& video) const {
  if (!video.is_file()) {
    TROUPE_ASSIGN(const Look look, named(video, look_at_frames(root, video), ": "));
    return named(video, grid_of_look(look));
  }
  TROUPE_ASSIGN(const auto file, open_file(root, video));
  TROUPE_ASSIGN(const Look look, named(video, look_at_file(file.bytes(), video)));
  return named(video, grid_of_look(look));
}

Status VideoReader::check_look(const RecordVideo& video, const Look& look, const IndexedImage& expected) const {
  TROUPE_ASSIGN(const IndexedImage grid, named(video, grid_of_look(look)));
  if (grid.t == expected.t && grid.h == expected.h && grid.w == expected.w && grid.seconds == expected.seconds)
    return {};
  return data_loss(video_name(video) + " has another size, length or rate than when it was indexed");
}

Status VideoReader::frames(const PictureRoot& root, const RecordVideo& video, const IndexedImage& expected,
                           const std::function<Status(const RgbImage&)>& take) const {
  if (!video.is_file()) return frames_of_list(root, video, expected, take);
  TROUPE_ASSIGN(const auto file, open_file(root, video));
  TROUPE_ASSIGN(const Look look, named(video, look_at_file(file.bytes(), video)));
  TROUPE_RETURN_IF_ERROR(check_look(video, look, expected));
  const Status decoded = files_->decode(file.bytes(), look.numbers, take);
  return decoded.ok() ? decoded : Status(named(video, decoded.error()));
}

Status VideoReader::frames_of_list(const PictureRoot& root, const RecordVideo& video, const IndexedImage& expected,
                                   const std::function<Status(const RgbImage&)>& take) const {
  Look look;
  look.frames = static_cast<int64_t>(video.frames.size());
  look.fps = rate_of_list(video);
  for (const auto& frame : video.frames) {
    TROUPE_ASSIGN(const auto file, open_medium(root, frame));
    const auto picture = decode_image(file.bytes());
    if (!picture.ok())
      return within(video, make_error(picture.error().code, image_name(frame.path) + " " + picture.error().message));
    look.size = {picture->height, picture->width};
    TROUPE_RETURN_IF_ERROR(check_look(video, look, expected));
    TROUPE_RETURN_IF_ERROR(take(*picture));
  }
  return {};
}

Result<RgbImage> VideoReader::first_frame(const PictureRoot& root, const RecordVideo& video) const {
  TROUPE_ASSIGN(const auto file, video.is_file() ? open_file(root, video) : open_medium(root, video.frames[0]));
  if (!video.is_file()) return decode_image(file.bytes());
  RgbImage first;
  TROUPE_RETURN_IF_ERROR(files_->decode(file.bytes(), {0}, [&](const RgbImage& frame) {
    first = frame;
    return Status();
  }));
  return first;
}

}  // namespace troupe
