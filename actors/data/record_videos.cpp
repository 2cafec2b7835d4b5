#include "actors/data/record_videos.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "actors/data/placeholders.h"
#include "actors/data/record_fields.h"
#include "actors/video/container.h"

namespace troupe {
namespace {

using namespace record_fields;

constexpr double kMostFps = 1000;
/// Keys beside a video that would change which of its frames are taken, or how.
constexpr std::array<const char*, 9> kUnreadOfPart{"nframes",     "min_frames", "max_frames",
                                                   "min_pixels",  "max_pixels", "total_pixels",
                                                   "video_start", "video_end",  "resized_height"};

Result<double> read_fps(const Json& value, const std::string& where) {
  const double fps = value.is_number() ? value.get<double>() : 0;
  if (!(fps > 0 && fps <= kMostFps))
    return invalid_argument(where + " is " + quoted(value.dump()) +
                            "; frames a second, above 0 and up to 1000, are understood");
  return fps;
}

/// A list is the frames of one video.
Status read_video(const Json& value, const std::string& key, std::vector<RecordVideo>& videos) {
  RecordVideo video;
  std::vector<RecordMedium> files;
  if (value.is_array()) {
    if (value.empty()) return invalid_argument("key '" + key + "' holds a video without frames");
    TROUPE_RETURN_IF_ERROR(read_image_list(value, key, video.frames));
  } else {
    TROUPE_RETURN_IF_ERROR(read_image(value, key, files));
    video.file = std::move(files[0]);
  }
  videos.push_back(std::move(video));
  return {};
}

/// One video or a list of them.
Status read_video_list(const Json& value, const std::string& key, std::vector<RecordVideo>& videos) {
  if (!value.is_array()) {
    if (value.is_string() || value.is_object() || value.is_binary()) return read_video(value, key, videos);
    return wrong_type(key, value, "a path, a list of paths, or a list of lists of frames");
  }
  for (const auto& item : value) TROUPE_RETURN_IF_ERROR(read_video(item, key, videos));
  return {};
}

/// Frames a second beside the list: one number for all of `videos`, or one for each. A file knows its own.
Status read_rates(const Json& object, const RecordSpelling& spelling, std::vector<RecordVideo>& videos) {
  const bool frames = std::any_of(videos.begin(), videos.end(), [](const auto& v) { return !v.is_file(); });
  const Found found = frames ? present(object, Column::kFps, spelling) : Found();
  if (!found) return {};
  const std::string where = "key '" + found.key + "'";
  if (found.value->is_array() && found.value->size() != videos.size())
    return invalid_argument(where + " has " + std::to_string(found.value->size()) + " numbers for " +
                            std::to_string(videos.size()) + (videos.size() == 1 ? " video" : " videos"));
  for (size_t i = 0; i < videos.size(); ++i) {
    if (videos[i].is_file()) continue;
    TROUPE_ASSIGN(videos[i].fps, read_fps(found.value->is_array() ? found.value->at(i) : *found.value, where));
  }
  return {};
}

}  // namespace

Status read_video_part(const nlohmann::json& part, const std::string& type, const std::string& where,
                       std::vector<RecordVideo>& videos) {
  const auto value = part.find(type);
  if (value == part.end() || value->is_null()) return {};  // the record's list of videos has it
  for (const char* key : kUnreadOfPart)
    if (const auto found = part.find(key); found != part.end() && !found->is_null())
      return invalid_argument(where + " has a video with '" + key + "', which is not read; valid: fps");
  const Json& video = value->is_object() && value->contains("url") ? value->at("url") : *value;
  TROUPE_RETURN_IF_ERROR(read_video(video, where + "." + type, videos));
  for (const char* key : {"fps", "sample_fps"}) {
    const auto fps = part.find(key);
    if (fps == part.end() || fps->is_null()) continue;
    TROUPE_ASSIGN(videos.back().fps, read_fps(*fps, where + ": '" + key + "'"));
  }
  return {};
}

Status read_videos(const nlohmann::json& object, const RecordSpelling& spelling, Record& record) {
  Found first;
  for (const auto& key : keys_of(Column::kVideos, spelling)) {
    const auto found = object.find(key);
    if (found == object.end() || is_empty(*found)) continue;
    if (first && *first.value != *found)
      return invalid_argument("has both '" + first.key + "' and '" + key + "', and they differ");
    if (!first) {
      std::vector<RecordVideo> videos;
      TROUPE_RETURN_IF_ERROR(read_video_list(*found, key, videos));
      TROUPE_RETURN_IF_ERROR(read_rates(object, spelling, videos));
      record.videos.insert(record.videos.end(), videos.begin(), videos.end());
    }
    first = {key, &*found};
  }
  return {};
}

void bind_image_placeholders_to_videos(Record& record) {
  if (!record.images.empty() || record.videos.empty()) return;
  const auto media = media_in_order(record.turns);
  if (std::any_of(media.begin(), media.end(), [](const auto& m) { return m.video; })) return;
  for (Turn& turn : record.turns) {
    if (turn.role != Role::kUser) continue;
    for (auto p = find_placeholder(turn.text, 0); p.found(); p = find_placeholder(turn.text, p.at + 1))
      if (!p.video) turn.text.replace(p.at, kImagePlaceholder.size(), kVideoPlaceholder);
  }
}

bool is_video_name(std::string_view name) {
  for (const std::string_view end : {".mp4", ".mkv", ".webm", ".avi", ".mov"}) {
    const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    if (name.size() > end.size() &&
        std::equal(end.begin(), end.end(), name.end() - static_cast<std::ptrdiff_t>(end.size()),
                   [&](char b, char a) { return same(a, b); }))
      return true;
  }
  return false;
}

bool looks_like_video(const nlohmann::json& value) {
  if (value.is_array()) return std::any_of(value.begin(), value.end(), looks_like_video);
  if (value.is_binary()) {
    const auto& bytes = value.get_binary();
    return video_container_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) != nullptr;
  }
  if (value.is_object())
    return std::any_of(value.begin(), value.end(), [](const Json& v) { return v.is_binary() && looks_like_video(v); });
  return value.is_string() && is_video_name(value.get_ref<const std::string&>());
}

}  // namespace troupe
