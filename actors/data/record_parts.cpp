#include "actors/data/record_parts.h"

#include <algorithm>

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

/// Which of the record's list a part without an image of its own says that it is.
std::optional<double> number_of(const Json& part) {
  const auto number = part.find("index");
  if (number == part.end()) return std::nullopt;
  if (number->is_number()) return number->get<double>();
  if (!number->is_string()) return std::nullopt;
  const auto& text = number->get_ref<const std::string&>();
  const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::optional(std::stod(text)) : std::nullopt;
}

Status read_image_part(const Json& part, const std::string& where, const RecordSpelling& spelling, Turn& turn,
                       Record& record, PartNumbers& numbers) {
  if (turn.role != Role::kUser) return invalid_argument(where + " holds an image, but only questions may");
  TROUPE_RETURN_IF_ERROR(refuse_image_settings(part, where, spelling));
  TROUPE_ASSIGN(const Found image, medium_of(part, "image", where));
  if (!image) numbers.push_back(number_of(part));
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

Status check_numbers(const PartNumbers& numbers) {
  const bool all = std::all_of(numbers.begin(), numbers.end(), [](const auto& number) { return number.has_value(); });
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!numbers[i] || (all ? i == 0 || *numbers[i] > *numbers[i - 1] : *numbers[i] == static_cast<double>(i)))
      continue;
    return invalid_argument("has a part of type 'image' whose 'index' is " + Json(*numbers[i]).dump() + " in place " +
                            std::to_string(i) +
                            ", counted from 0, but images are taken from the record's list in their order; valid: that "
                            "order in the list too, or parts that name their images");
  }
  return {};
}

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
