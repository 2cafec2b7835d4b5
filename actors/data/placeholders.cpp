#include "actors/data/placeholders.h"

#include <algorithm>

#include "actors/data/media_names.h"
#include "actors/data/record_videos.h"

namespace troupe {
namespace {

Status check_count(size_t placeholders, std::string_view spelling, size_t media, const std::string& what) {
  if (placeholders == media) return {};
  return invalid_argument(std::to_string(placeholders) + " " + std::string(spelling) +
                          (placeholders == 1 ? " placeholder" : " placeholders") + " in the user turns, but " +
                          std::to_string(media) + " " + what + (media == 1 ? "" : "s") +
                          "; valid: as many, each where its " + what + " belongs");
}

}  // namespace

Placeholder find_placeholder(std::string_view text, size_t from) {
  for (size_t at = text.find('<', from); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const auto rest = text.substr(at);
    if (rest.starts_with(kImagePlaceholder)) return {at, false};
    if (rest.starts_with(kVideoPlaceholder)) return {at, true};
  }
  return {};
}

std::vector<MediumPlace> media_in_order(const std::vector<Turn>& turns) {
  std::vector<MediumPlace> media;
  size_t images = 0, videos = 0;
  for (const Turn& turn : turns) {
    if (turn.role != Role::kUser) continue;
    for (auto p = find_placeholder(turn.text, 0); p.found(); p = find_placeholder(turn.text, p.end()))
      media.push_back({p.video, p.video ? videos++ : images++});
  }
  return media;
}

namespace {

/// How other programs write a picture into a question: it would be learned from as words.
Status refuse_foreign_pictures(const Record& record) {
  if (!record.images.empty() || !record.videos.empty()) return {};
  for (const Turn& turn : record.turns) {
    if (turn.role != Role::kUser) continue;
    const size_t open = turn.text.find("<img>"), close = turn.text.find("</img>", open);
    const bool named = open != std::string::npos && close != std::string::npos;
    if (named || turn.text.find("<ImageHere>") != std::string::npos)
      return invalid_argument(
          std::string("has ") + (named ? "<img>...</img>" : "<ImageHere>") +
          " in a question, which is not read as a picture; valid: <image> there, and the picture under 'images'");
  }
  return {};
}

}  // namespace

Status check_placeholders(const Record& record) {
  TROUPE_RETURN_IF_ERROR(refuse_foreign_pictures(record));
  const auto media = media_in_order(record.turns);
  const auto videos =
      static_cast<size_t>(std::count_if(media.begin(), media.end(), [](const auto& m) { return m.video; }));
  TROUPE_RETURN_IF_ERROR(check_count(media.size() - videos, kImagePlaceholder, record.images.size(), "image"));
  const Status status = check_count(videos, kVideoPlaceholder, record.videos.size(), "video");
  const bool flat = std::any_of(record.videos.begin(), record.videos.end(),
                                [](const auto& video) { return video.is_file() && is_picture_name(video.file.path); });
  return status.ok() || !flat ? status : invalid_argument(status.error().message + "; " + kHowFramesAreWritten);
}

}  // namespace troupe
