#include "actors/data/unread_media.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/data/key_words.h"
#include "actors/data/media_names.h"
#include "actors/data/record_fields.h"
#include "actors/data/record_videos.h"
#include "actors/images/image_file.h"
#include "actors/video/container.h"

namespace troupe {
namespace {

using namespace record_fields;

constexpr size_t kLevels = 8;         // of lists and objects that are looked into
constexpr size_t kBase64Looked = 64;  // letters that must be base64; fewer are a word

enum class Kind { kNone, kPicture, kVideo, kSound };

/// What a key speaks of.
struct Topic {
  Kind kind = Kind::kNone;
  bool only = false;    // nothing but such a medium and where it lies: "image_url", not "image_license"
  bool names = false;   // files' names, which may have blanks
  bool holder = false;  // it holds files: "attachments"
  bool record = false;  // a name alone is enough: it stands in the record itself, or below a holder
  bool medium() const { return kind != Kind::kNone; }
};

Topic topic_of(std::string_view key) {
  Topic topic;
  topic.only = true;
  for (const auto& word : key_words(key)) {
    const auto is_one_of = [&](const auto& list) { return std::ranges::find(list, word) != list.end(); };
    const auto begins_one_of = [&](const auto& list) {
      return std::ranges::any_of(list, [&](std::string_view begin) { return word.starts_with(begin); });
    };
    constexpr std::array<std::string_view, 3> kVideoWords{"video", "clip", "clips"};
    constexpr std::array<std::string_view, 8> kPictureWords{"image",      "img",       "picture", "photo",
                                                            "screenshot", "thumbnail", "pic",     "pics"};
    constexpr std::array<std::string_view, 6> kSoundWords{"audio", "audios", "sound", "wav", "speech", "voice"};
    constexpr std::array<std::string_view, 3> kHolderWords{"media", "attachment", "attachments"};
    constexpr std::array<std::string_view, 13> kPlaceWords{
        "url", "urls", "uri", "link", "links", "src", "path", "paths", "file", "files", "filename", "name", "names"};
    const bool video = word.starts_with(kVideoWords[0]) || is_one_of(kVideoWords), place = is_one_of(kPlaceWords);
    const bool picture = begins_one_of(std::span(kPictureWords).first(6)) || is_one_of(kPictureWords);
    const bool sound = is_one_of(kSoundWords), holder = is_one_of(kHolderWords);
    if (video)
      topic.kind = Kind::kVideo;
    else if (sound && !topic.medium())
      topic.kind = Kind::kSound;
    else if (picture && !topic.medium())
      topic.kind = Kind::kPicture;
    topic.only = topic.only && (video || picture || sound || holder || place);
    topic.names = place;  // the last word
    topic.holder = topic.holder || holder;
  }
  topic.names = topic.names || topic.only;
  return topic;
}

/// JPEG, PNG, GIF, RIFF (WebP), TIFF; MP4 and Matroska.
Kind kind_of_base64(std::string_view text) {
  const std::string_view looked = text.substr(0, kBase64Looked);
  const bool base64 = std::all_of(looked.begin(), looked.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("+/=\r\n").find(c) != std::string::npos;
  });
  if (!base64) return Kind::kNone;
  for (const std::string_view begin : {"/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR", "SUkqA", "TU0AK"})
    if (text.starts_with(begin)) return Kind::kPicture;
  const bool mp4 = text.starts_with("AAAA") && text.size() > 8 && text.substr(5).starts_with("GZ0eX");
  return mp4 || text.starts_with("GkXfo") ? Kind::kVideo : Kind::kNone;
}

Kind kind_of_name(std::string_view name, const Topic& topic) {
  if (!topic.medium() && !topic.record) return Kind::kNone;
  if (is_picture_name(name) || (topic.medium() && is_unread_picture_name(name))) return Kind::kPicture;
  if (is_video_name(name)) return Kind::kVideo;
  return topic.kind == Kind::kSound && is_sound_name(name) ? Kind::kSound : Kind::kNone;
}

Kind kind_of_text(std::string_view text, const Topic& topic) {
  if (text.starts_with("data:")) {
    if (text.starts_with("data:video/")) return Kind::kVideo;
    if (text.starts_with("data:image/")) return Kind::kPicture;
    if (text.starts_with("data:audio/")) return Kind::kSound;
    const size_t comma = text.find(";base64,");
    return comma == std::string_view::npos ? Kind::kNone : kind_of_base64(text.substr(comma + 8));
  }
  if (text.size() >= kBase64Looked)
    if (const Kind kind = kind_of_base64(text); kind != Kind::kNone) return kind;
  // Words may end like a name.
  if (text.find_first_of(topic.names ? "\r\n" : " \t\r\n") != std::string_view::npos) return Kind::kNone;
  if (const Kind kind = kind_of_name(text, topic); kind != Kind::kNone) return kind;
  // What follows belongs to an address.
  if (const Kind kind = kind_of_name(text.substr(0, text.find_first_of("?#")), topic); kind != Kind::kNone) return kind;
  const bool address = text.find("://") != std::string_view::npos && text.find(' ') == std::string_view::npos;
  return address && topic.only ? topic.kind : Kind::kNone;
}

/// `topic`: what the keys above speak of.
Kind kind_of(const Json& value, const Topic& topic, size_t levels) {
  if (value.is_string()) return kind_of_text(value.get_ref<const std::string&>(), topic);
  if (value.is_binary()) {
    const auto& held = value.get_binary();
    const std::string_view bytes(reinterpret_cast<const char*>(held.data()), held.size());
    if (looks_like_video_data(bytes)) return Kind::kVideo;
    return read_image_header(bytes).ok() ? Kind::kPicture : Kind::kNone;
  }
  if (!value.is_structured() || levels == 0) return Kind::kNone;
  for (const auto& [below, item] : value.items()) {
    Topic own = value.is_object() ? topic_of(below) : topic;
    if (!own.medium()) own.kind = topic.kind;
    own.holder = own.holder || topic.holder;
    if (value.is_object()) own.record = own.holder;
    if (const Kind kind = kind_of(item, own, levels - 1); kind != Kind::kNone) return kind;
  }
  return Kind::kNone;
}

/// `where` goes before the message.
Status refuse(const std::string& where, const std::string& key, const Json& value, const RecordSpelling& spelling) {
  if (named_by_spec(key, spelling)) return {};
  Topic topic = topic_of(key);
  topic.record = topic.holder || where.empty();
  const Kind kind = kind_of(value, topic, kLevels);
  if (kind == Kind::kNone) return {};
  if (kind == Kind::kSound)
    return invalid_argument(where + "key '" + key + "' names sound, which is not read; valid: columns: {ignored: " +
                            key + "}, or records without it");
  const auto words = key_words(key);
  const bool frames = !words.empty() && words[0] == "frames";
  const std::string word = kind == Kind::kVideo || frames ? "video" : "image",
                    what = kind == Kind::kVideo ? "videos" : "pictures";
  if (const auto named = spelling.columns.find(word + "s"); named != spelling.columns.end() && !named->second.empty())
    return invalid_argument(where + "key '" + key + "' names " + what + " but is not read: columns say that '" +
                            named->second + "' holds the record's " + word + "s; valid: columns: {" + word +
                            "s: " + key + "}, or {ignored: " + key + "}");
  if (frames)
    return invalid_argument(where + "key '" + key + "' names " + what + " but is not read; " + kHowFramesAreWritten +
                            " (videos: [[...]]), or columns: {ignored: " + key + "}");
  return invalid_argument(where + "key '" + key + "' names " + what + " but is not read; use '" + word + "' or '" +
                          word + "s' of the record, the spec's columns, or columns: {ignored: " + key + "}");
}

Status refuse_in_turns(const Json& turns, const RecordSpelling& spelling) {
  std::vector<std::string> read = keys_of(Column::kContent, spelling);
  for (const auto& key : keys_of(Column::kRole, spelling)) read.push_back(key);
  for (size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].is_object()) continue;
    const std::string where = "turn " + std::to_string(i + 1) + ": ";
    for (const auto& [key, value] : turns[i].items()) {
      if (std::find(read.begin(), read.end(), key) == read.end()) {
        TROUPE_RETURN_IF_ERROR(refuse(where, key, value, spelling));
        continue;
      }
      if (!value.is_array()) continue;
      for (const auto& part : value)
        for (const auto& [beside, held] : part.items())
          if (beside != "type" && beside != "text") TROUPE_RETURN_IF_ERROR(refuse(where, beside, held, spelling));
    }
  }
  return {};
}

}  // namespace

Status refuse_unread_media(const Json& object, const RecordSpelling& spelling) {
  const auto turns = keys_of(Column::kTurns, spelling);
  std::vector<std::string> words;  // that are read as they are
  for (const auto column :
       {Column::kQuestion, Column::kInput, Column::kAnswer, Column::kHistory, Column::kSystem, Column::kId})
    for (const auto& key : keys_of(column, spelling)) words.push_back(key);
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(words, key) != words.end()) continue;
    if (value.is_array() && std::find(turns.begin(), turns.end(), key) != turns.end())
      TROUPE_RETURN_IF_ERROR(refuse_in_turns(value, spelling));
    else
      TROUPE_RETURN_IF_ERROR(refuse("", key, value, spelling));
  }
  return {};
}

}  // namespace troupe
