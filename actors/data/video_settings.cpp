#include "actors/data/video_settings.h"

#include <algorithm>
#include <string>

namespace troupe {
namespace {

constexpr int64_t kDefaultMinPixels = 128 * 28 * 28, kDefaultMaxPixels = 768 * 28 * 28;

/// A limit in force and who set it.
struct Limit {
  int64_t value;
  const char* from;
};
Limit limit_of(const std::optional<int64_t>& spec, const std::optional<int64_t>& folder, int64_t otherwise) {
  if (spec) return {*spec, ""};
  if (folder) return {*folder, " (of the model folder)"};
  return {otherwise, " (the default of the original processor)"};
}

Status check_order(const std::string& key, const char* least_name, const Limit& least, const char* most_name,
                   const Limit& most) {
  if (least.value <= most.value) return {};
  return invalid_argument(key + "the limits of videos are " + least_name + " " + std::to_string(least.value) +
                          least.from + " and " + most_name + " " + std::to_string(most.value) + most.from +
                          "; valid: " + least_name + " <= " + most_name);
}

}  // namespace

int64_t VideoSettings::max_pixels_of(int64_t frames) const {
  if (!most_pixels_altogether) return max_pixels;
  const int64_t share = *most_pixels_altogether * temporal_patch_size / frames;
  return std::max(std::min(max_pixels, share), static_cast<int64_t>(static_cast<double>(min_pixels) * 1.05));
}

Result<VideoSettings> video_settings(const VideoSpec& spec, const VideoProcessorConfig& processor,
                                     const VisionConfig& vision) {
  VideoSettings out;
  const Limit least_frames = limit_of(spec.min_frames, processor.min_frames, out.sampling.min_frames),
              most_frames = limit_of(spec.max_frames, processor.max_frames, out.sampling.max_frames),
              least = limit_of(spec.min_pixels, processor.min_pixels, kDefaultMinPixels),
              most = limit_of(spec.max_pixels, processor.max_pixels, kDefaultMaxPixels);
  const auto key_of = [](bool low, const char* low_name, bool high, const char* high_name) {
    return low || high ? std::string("key 'data.video.") + (high ? high_name : low_name) + "': " : std::string();
  };
  TROUPE_RETURN_IF_ERROR(
      check_order(key_of(spec.min_frames.has_value(), "min_frames", spec.max_frames.has_value(), "max_frames"),
                  "min_frames", least_frames, "max_frames", most_frames));
  TROUPE_RETURN_IF_ERROR(
      check_order(key_of(spec.min_pixels.has_value(), "min_pixels", spec.max_pixels.has_value(), "max_pixels"),
                  "min_pixels", least, "max_pixels", most));
  out.sampling = {spec.fps.value_or(processor.fps.value_or(out.sampling.fps)), least_frames.value, most_frames.value};
  out.frame_list_fps = spec.fps.value_or(out.frame_list_fps);
  out.min_pixels = least.value;
  out.max_pixels = most.value;
  out.values = processor;
  out.patch_size = vision.patch_size;
  out.merge_size = vision.merge_size;
  out.temporal_patch_size = vision.temporal_patch_size;
  const int64_t factor = vision.patch_size * vision.merge_size;
  if (processor.cap_pixels_per_frame)
    out.most_pixels_altogether =
        static_cast<int64_t>(static_cast<double>(processor.max_video_tokens * factor * factor) * 0.9);
  return out;
}

}  // namespace troupe
