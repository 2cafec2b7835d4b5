#include "actors/checkpoint/export_processors.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>

#include "actors/checkpoint/json_file.h"

namespace troupe::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Both spellings of the limits: the keys of older processors, and the "size" of newer ones. 0: left as it is.
void set_pixel_limits(OrderedJson& processor, int64_t min_pixels, int64_t max_pixels) {
  const auto set = [&](const char* key, const char* size_key, int64_t value) {
    if (value <= 0) return;
    const bool by_size = processor.contains("size") && processor["size"].is_object();
    if (by_size) processor["size"][size_key] = value;
    if (!by_size || processor.contains(key)) processor[key] = value;
  };
  set("min_pixels", "shortest_edge", min_pixels);
  set("max_pixels", "longest_edge", max_pixels);
}

void set_video(OrderedJson& processor, const VideoSpec& video) {
  set_pixel_limits(processor, video.min_pixels.value_or(0), video.max_pixels.value_or(0));
  if (video.fps) processor["fps"] = *video.fps;
  if (video.min_frames) processor["min_frames"] = *video.min_frames;
  if (video.max_frames) processor["max_frames"] = *video.max_frames;
}

/// Changes a file, or a part of it, that is there. False when it is not.
Result<bool> change(const std::string& path, const char* part, const std::function<void(OrderedJson&)>& set) {
  if (!fs::exists(path)) return false;
  TROUPE_ASSIGN(OrderedJson json, read_json_object(path));
  if (part != nullptr && !(json.contains(part) && json[part].is_object())) return false;
  set(part != nullptr ? json[part] : json);
  TROUPE_RETURN_IF_ERROR(write_json_file(path, json));
  return true;
}

Status write_video_settings(const ExportOptions& options, const std::string& target) {
  const auto set = [&](OrderedJson& processor) { set_video(processor, options.video); };
  const std::string own = target + "/video_preprocessor_config.json", shared = target + "/preprocessor_config.json";
  TROUPE_ASSIGN(const bool nested, change(target + "/processor_config.json", "video_processor", set));
  if (nested) return {};
  TROUPE_ASSIGN(const bool alone, change(own, nullptr, set));
  if (alone) return {};
  if (fs::exists(shared)) {
    TROUPE_ASSIGN(OrderedJson processor, read_json_object(shared));
    set(processor);
    return write_json_file(own, processor);
  }
  if (options.video.given())
    spdlog::warn("export: {} has no video processor file, so data.video is not in the exported folder",
                 options.source_folder);
  return {};
}

Status write_image_limits(const ExportOptions& options, const std::string& target) {
  const auto set = [&](OrderedJson& processor) { set_pixel_limits(processor, options.min_pixels, options.max_pixels); };
  TROUPE_ASSIGN(const bool alone, change(target + "/preprocessor_config.json", nullptr, set));
  TROUPE_ASSIGN(const bool nested, change(target + "/processor_config.json", "image_processor", set));
  if (!alone && !nested)
    spdlog::warn(
        "export: {} has no preprocessor_config.json, so the pixel limits of training are not in the exported folder",
        options.source_folder);
  return {};
}

}  // namespace

Status write_processor_settings(const ExportOptions& options, const std::string& target) {
  const bool images = options.min_pixels > 0 || options.max_pixels > 0;
  // Videos first: their file may begin as a copy of the image processor's.
  if (images || options.video.given()) TROUPE_RETURN_IF_ERROR(write_video_settings(options, target));
  return images ? write_image_limits(options, target) : Status();
}

}  // namespace troupe::checkpoint
