#include "actors/data/record_parts.h"

#include "actors/data/placeholders.h"
#include "actors/data/record_fields.h"
#include "actors/data/record_videos.h"
#include "actors/data/turn_marks.h"

namespace troupe {
namespace {

using namespace record_fields;

constexpr const char* kWhatPartsAre = "parts are objects with 'type': text, image, image_url, video or video_url";

/// What belongs to a part of another type.
Status refuse_other_words(const Json& part, const std::string& type, const std::string& where) {
  for (const char* word : {"text", "image", "image_url", "images", "video", "video_url", "videos"}) {
    const auto beside = part.find(word);
    const bool own = word == type || word == type + "_url" || word + std::string("_url") == type;
    if (!own && beside != part.end() && !holds_nothing(*beside))
      return invalid_argument(where + " has a part of type '" + type + "' with '" + word +
                              "', which is not read there; valid: a part of its own");
  }
  return {};
}

std::string name_of_type(const Json& part) {
  const auto type = part.find("type");
  return type != part.end() && type->is_string() ? type->get<std::string>() : "";
}

Status read_text(const Json& part, const std::string& where, Turn& turn) {
  const auto text = part.find("text");
  if (text == part.end() || text->is_null())
    return invalid_argument(where + " has a part of type 'text' without 'text'");
  if (!text->is_string())
    return invalid_argument(where + " has a part whose 'text' is " + type_of(*text) + "; a string is understood");
  turn.text += text->get<std::string>();
  return {};
}

/// The picture or video of a part: under the type's word, under `path`, `url` or `base64`, or the part itself where it
/// has bytes. Nothing: the record's list has it.
Result<Found> medium_of(const Json& part, const std::string& word, const std::string& where) {
  Found first;
  for (const std::string& key : {word, word + "_url", std::string("path"), std::string("url"), std::string("base64")}) {
    const auto found = part.find(key);
    if (found == part.end() || found->is_null() || *found == "") continue;
    const Json& value = found->is_object() && found->contains("url") ? found->at("url") : *found;
    if (first && *first.value != value)
      return invalid_argument(where + " has a part with both '" + first.key + "' and '" + key + "', and they differ");
    if (!first) first = {key, &value};
  }
  const auto bytes = part.find("bytes");
  const bool whole = bytes != part.end() && !is_empty(*bytes);
  if (whole && first && first.key != "path")
    return invalid_argument(where + " has a part with both '" + first.key + "' and 'bytes'");
  if (whole || first.key == "base64") first = {whole ? "bytes" : "base64", &part};
  return first;
}

/// Parts without an image of their own may say which of the record's list they are, counted from 0 or from 1. They take
/// them in their order, so the numbers must ascend.
Status check_number(const Json& part, const std::string& where, PartNumbers& numbers) {
  const auto number = part.find("index");
  if (number == part.end() || !number->is_number()) return {};
  const auto index = number->get<double>();
  if (numbers.last && !(index > *numbers.last))
    return invalid_argument(where + " has a part of type 'image' whose 'index' is " + number->dump() +
                            " behind one of " + Json(*numbers.last).dump() +
                            ", but images are taken from the record's list in their order; valid: that order in the "
                            "list too, or parts that name their images");
  numbers.last = index;
  return {};
}

Status read_image_part(const Json& part, const std::string& where, const RecordSpelling& spelling, Turn& turn,
                       Record& record, PartNumbers& numbers) {
  if (turn.role != Role::kUser) return invalid_argument(where + " holds an image, but only questions may");
  TROUPE_RETURN_IF_ERROR(refuse_image_settings(part, where, spelling));
  for (const char* name : {"image", "image_url"})
    if (const auto holder = part.find(name); holder != part.end() && holder->is_object())
      TROUPE_RETURN_IF_ERROR(refuse_image_settings(*holder, where, spelling));
  TROUPE_ASSIGN(const Found image, medium_of(part, "image", where));
  if (!image) TROUPE_RETURN_IF_ERROR(check_number(part, where, numbers));
  turn.text += kImagePlaceholder;
  return image ? read_image(*image.value, where + "." + image.key, record.images) : Status();
}

Status read_video_part(const Json& part, const std::string& where, const RecordSpelling& spelling, Turn& turn,
                       Record& record) {
  if (turn.role != Role::kUser) return invalid_argument(where + " holds a video, but only questions may");
  turn.text += kVideoPlaceholder;
  TROUPE_ASSIGN(const Found video, medium_of(part, "video", where));
  return read_part_video(part, video.value, where, video.key, spelling, record.videos);
}

}  // namespace

Status read_parts(const Json& parts, const std::string& where, const RecordSpelling& spelling, Turn& turn,
                  Record& record, PartNumbers& numbers) {
  for (const auto& written : parts) {
    Json own;
    const Json& part = without_ignored(written, spelling, own);
    if (!part.is_object())
      return invalid_argument(where + " has " + type_of(part) + " in its list of parts; " + kWhatPartsAre);
    const std::string type = name_of_type(part);
    const bool text = type == "text", image = type == "image" || type == "image_url";
    if (!text && !image && type != "video" && type != "video_url")
      return invalid_argument(where +
                              (type.empty() ? " has a part without 'type'" : " has a part of type " + quoted(type)) +
                              "; " + kWhatPartsAre);
    TROUPE_RETURN_IF_ERROR(refuse_other_words(part, type, where));
    TROUPE_RETURN_IF_ERROR(refuse_part_marks(part, spelling, where, turn.role));
    TROUPE_RETURN_IF_ERROR(text    ? read_text(part, where, turn)
                           : image ? read_image_part(part, where, spelling, turn, record, numbers)
                                   : read_video_part(part, where, spelling, turn, record));
  }
  return {};
}

}  // namespace troupe
