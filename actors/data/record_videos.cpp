#include "actors/data/record_videos.h"

#include <algorithm>

#include "actors/data/placeholders.h"
#include "actors/data/record_fields.h"
#include "base/config/record_spelling.h"

namespace troupe {
namespace {

using namespace record_fields;

constexpr double kLeastFps = 0.001, kMostFps = 1000;

Result<double> read_fps(const Json& value, const std::string& where) {
  const double fps = value.is_number() ? value.get<double>() : 0;
  if (!(fps >= kLeastFps && fps <= kMostFps))
    return invalid_argument(where + " is " + quoted(value.dump()) +
                            "; frames a second, from 0.001 to 1000, are understood");
  return fps;
}

/// What stands beside a video: the keys that are not read, and how many frames a second where it says so.
Status read_beside(const Json& object, const std::string& where, const RecordSpelling& spelling, RecordVideo* video) {
  if (const auto key = unread_setting(object, spelling); !key.empty())
    return invalid_argument(where + " has a video with '" + key +
                            "', which is not read; valid: fps, or columns: {ignored: " + key + "}");
  const char* before = nullptr;
  for (const char* key : {"fps", "sample_fps"}) {
    const auto fps = object.find(key);
    if (fps == object.end() || fps->is_null() || is_ignored(key, spelling)) continue;
    if (video == nullptr)
      return invalid_argument(where + " has '" + key +
                              "' and no video; valid: the video in the same part, or fps beside the list of videos");
    TROUPE_ASSIGN(const double rate, read_fps(*fps, where + ": '" + key + "'"));
    if (before == nullptr && video->fps != 0 && rate != video->fps)
      return invalid_argument(where + ": '" + key + "' is said twice, and they differ");
    if (before != nullptr && rate != video->fps)
      return invalid_argument(where + " has both '" + before + "' and '" + key + "', and they differ");
    video->fps = rate;
    before = key;
  }
  return {};
}

/// A list is the frames of one video.
Status read_video(const Json& value, const std::string& key, const RecordSpelling& spelling,
                  std::vector<RecordVideo>& videos) {
  RecordVideo video;
  std::vector<RecordMedium> files;
  if (value.is_array()) {
    if (value.empty()) return invalid_argument("key '" + key + "' holds a video without frames");
    TROUPE_RETURN_IF_ERROR(read_image_list(value, key, spelling, video.frames));
  } else {
    TROUPE_RETURN_IF_ERROR(read_image(value, key, files));
    video.file = std::move(files[0]);
    if (value.is_object()) TROUPE_RETURN_IF_ERROR(read_beside(value, "key '" + key + "'", spelling, &video));
  }
  videos.push_back(std::move(video));
  return {};
}

/// One video or a list of them.
Status read_video_list(const Json& value, const std::string& key, const RecordSpelling& spelling,
                       std::vector<RecordVideo>& videos) {
  if (!value.is_array()) {
    if (value.is_string() || value.is_object() || value.is_binary()) return read_video(value, key, spelling, videos);
    return wrong_type(key, value, "a path, a list of paths, or a list of lists of frames");
  }
  for (const auto& item : value) {
    Json own;
    TROUPE_RETURN_IF_ERROR(read_video(without_ignored(item, spelling, own), key, spelling, videos));
  }
  return {};
}

/// Frames a second beside the videos: one number for all of them, or one for each. A file knows its own.
Status read_rates(const Json& object, const RecordSpelling& spelling, std::vector<RecordVideo>& videos) {
  const auto without = [](const RecordVideo& v) { return !v.is_file() && v.fps == 0; };
  const bool frames = std::any_of(videos.begin(), videos.end(), without);
  if (!frames) return {};
  TROUPE_ASSIGN(const Found found, present(object, Column::kFps, spelling));
  if (!found) return {};
  const std::string where = "key '" + found.key + "'";
  if (found.value->is_array() && found.value->size() != videos.size())
    return invalid_argument(where + " has " + std::to_string(found.value->size()) + " numbers for " +
                            std::to_string(videos.size()) + (videos.size() == 1 ? " video" : " videos"));
  for (size_t i = 0; i < videos.size(); ++i) {
    if (!without(videos[i])) continue;
    TROUPE_ASSIGN(videos[i].fps, read_fps(found.value->is_array() ? found.value->at(i) : *found.value, where));
  }
  return {};
}

}  // namespace

Status read_part_video(const Json& part, const Json* value, const std::string& where, const std::string& key,
                       const RecordSpelling& spelling, std::vector<RecordVideo>& videos) {
  if (value == nullptr) return read_beside(part, where, spelling, nullptr);
  TROUPE_RETURN_IF_ERROR(read_video(*value, where + "." + key, spelling, videos));
  for (const char* name : {"video", "video_url"})
    if (const auto holder = part.find(name); holder != part.end() && holder->is_object() && holder->contains("url"))
      TROUPE_RETURN_IF_ERROR(read_beside(*holder, where, spelling, &videos.back()));
  return read_beside(part, where, spelling, &videos.back());
}

Status read_videos(const nlohmann::json& object, const RecordSpelling& spelling, Record& record) {
  TROUPE_ASSIGN(const Found found, present(object, Column::kVideos, spelling));
  std::vector<RecordVideo> listed;
  if (found) TROUPE_RETURN_IF_ERROR(read_video_list(*found.value, found.key, spelling, listed));
  if (!listed.empty() && !record.videos.empty()) return refuse_both("videos", found.key);
  record.videos.insert(record.videos.end(), listed.begin(), listed.end());
  return read_rates(object, spelling, record.videos);
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

}  // namespace troupe
