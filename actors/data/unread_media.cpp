#include "actors/data/unread_media.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "actors/data/media_names.h"
#include "actors/data/record_fields.h"
#include "actors/images/image_file.h"
#include "actors/video/container.h"

namespace troupe {
namespace {

using namespace record_fields;

constexpr size_t kLevels = 8;         // of lists and objects that are looked into
constexpr size_t kBase64Looked = 64;  // letters that must be base64

/// What a value looks like, or a key speaks of. kFile: of a file of any kind.
enum class Kind { kNone, kFile, kPicture, kVideo };

bool is_medium(Kind kind) { return kind == Kind::kPicture || kind == Kind::kVideo; }

Kind kind_of_key(std::string_view key) {
  std::string word = "_";
  for (const char c : key) {
    const auto letter = static_cast<unsigned char>(c);
    word += std::isalpha(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '_';
  }
  word += '_';
  const auto has = [&](const auto& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return word.find(part) != std::string::npos; });
  };
  constexpr std::array<std::string_view, 3> kVideoWords{"video", "_clip_", "_clips_"};
  constexpr std::array<std::string_view, 8> kPictureWords{"image",      "img",       "picture", "photo",
                                                          "screenshot", "thumbnail", "_pic_",   "_pics_"};
  constexpr std::array<std::string_view, 2> kFileWords{"file", "path"};
  if (has(kVideoWords)) return Kind::kVideo;
  if (has(kPictureWords)) return Kind::kPicture;
  return has(kFileWords) ? Kind::kFile : Kind::kNone;
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

Kind kind_of_name(std::string_view name) {
  if (is_picture_name(name) || is_unread_picture_name(name)) return Kind::kPicture;
  return is_video_name(name) ? Kind::kVideo : Kind::kNone;
}

Kind kind_of_text(std::string_view text, Kind key) {
  if (text.starts_with("data:")) {
    if (text.starts_with("data:video/")) return Kind::kVideo;
    if (text.starts_with("data:image/")) return Kind::kPicture;
    const size_t comma = text.find(";base64,");
    return comma == std::string_view::npos ? Kind::kNone : kind_of_base64(text.substr(comma + 8));
  }
  if (const Kind kind = kind_of_base64(text); is_medium(kind)) return kind;
  // Words may end like a name.
  if (text.find_first_of(key == Kind::kNone ? " \t\r\n" : "\r\n") != std::string_view::npos) return Kind::kNone;
  if (const Kind kind = kind_of_name(text); is_medium(kind)) return kind;
  // What follows belongs to an address.
  if (const Kind kind = kind_of_name(text.substr(0, text.find_first_of("?#"))); is_medium(kind)) return kind;
  const bool address = text.find("://") != std::string_view::npos && text.find(' ') == std::string_view::npos;
  return address && is_medium(key) ? key : Kind::kNone;
}

/// `key`: what the keys above speak of.
Kind kind_of(const Json& value, Kind key, size_t levels) {
  if (value.is_string()) return kind_of_text(value.get_ref<const std::string&>(), key);
  if (value.is_binary()) {
    const auto& held = value.get_binary();
    const std::string_view bytes(reinterpret_cast<const char*>(held.data()), held.size());
    if (looks_like_video_data(bytes)) return Kind::kVideo;
    return read_image_header(bytes).ok() ? Kind::kPicture : Kind::kNone;
  }
  if (!value.is_structured() || levels == 0) return Kind::kNone;
  for (const auto& [below, item] : value.items()) {
    const Kind own = value.is_object() ? kind_of_key(below) : Kind::kNone;
    if (const Kind kind = kind_of(item, own == Kind::kNone ? key : own, levels - 1); is_medium(kind)) return kind;
  }
  return Kind::kNone;
}

/// `where` goes before the message.
Status refuse(const std::string& where, const std::string& key, const Json& value) {
  const Kind kind = kind_of(value, kind_of_key(key), kLevels);
  if (!is_medium(kind)) return {};
  const std::string word = kind == Kind::kVideo ? "video" : "image",
                    what = kind == Kind::kVideo ? "videos" : "pictures";
  return invalid_argument(where + "key '" + key + "' names " + what + " but is not read; use '" + word + "' or '" +
                          word + "s' of the record, or the spec's columns");
}

Status refuse_in_turns(const Json& turns, const RecordSpelling& spelling) {
  std::vector<std::string> read = keys_of(Column::kContent, spelling);
  for (const auto& key : keys_of(Column::kRole, spelling)) read.push_back(key);
  for (size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].is_object()) continue;
    const std::string where = "turn " + std::to_string(i + 1) + ": ";
    for (const auto& [key, value] : turns[i].items()) {
      if (std::find(read.begin(), read.end(), key) == read.end()) {
        TROUPE_RETURN_IF_ERROR(refuse(where, key, value));
        continue;
      }
      if (!value.is_array()) continue;
      for (const auto& part : value)
        for (const auto& [beside, held] : part.items())
          if (beside != "type" && beside != "text") TROUPE_RETURN_IF_ERROR(refuse(where, beside, held));
    }
  }
  return {};
}

}  // namespace

Status refuse_unread_media(const Json& object, const RecordSpelling& spelling) {
  const auto turns = keys_of(Column::kTurns, spelling);
  for (const auto& [key, value] : object.items()) {
    if (value.is_array() && std::find(turns.begin(), turns.end(), key) != turns.end())
      TROUPE_RETURN_IF_ERROR(refuse_in_turns(value, spelling));
    else
      TROUPE_RETURN_IF_ERROR(refuse("", key, value));
  }
  return {};
}

}  // namespace troupe
