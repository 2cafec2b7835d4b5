#include "actors/data/record.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "actors/data/media_names.h"
#include "actors/data/placeholders.h"
#include "actors/data/record_fields.h"
#include "actors/data/record_turns.h"
#include "actors/data/record_videos.h"
#include "actors/data/turn_marks.h"
#include "actors/data/unread_media.h"
#include "base/json_text.h"
#include "base/utf8.h"

namespace troupe {
namespace {

using namespace record_fields;

bool is_sound(std::string_view text) { return first_invalid_utf8(text) == std::string::npos; }

/// What is wrong with the first text or key that is not UTF-8, which no file of JSON has; `where`: its path of keys.
std::optional<std::string> broken_text(const Json& value, const std::string& where) {
  if (value.is_string() && !is_sound(value.get_ref<const std::string&>()))
    return "key '" + where + "' holds text that is not UTF-8";
  if (value.is_array())
    for (const auto& item : value)
      if (auto broken = broken_text(item, where)) return broken;
  if (value.is_object())
    for (const auto& [key, below] : value.items()) {
      const std::string path = where.empty() ? key : where + "." + key;
      if (!is_sound(key)) {
        const std::string shown = Json(path).dump(-1, ' ', false, Json::error_handler_t::replace);
        return "key '" + shown.substr(1, shown.size() - 2) + "' is not UTF-8";
      }
      if (auto broken = broken_text(below, path)) return broken;
    }
  return {};
}

/// An id as text; empty when it is not UTF-8.
std::string id_text(const Json& id) {
  if (id.is_binary()) {
    const std::string text(id.get_binary().begin(), id.get_binary().end());
    return is_sound(text) ? text : "";
  }
  if (broken_text(id, {})) return {};
  return id.is_string() ? id.get<std::string>() : id.dump();
}

/// Reads and judges the fields of one record beside its turns.
class RecordReader {
 public:
  RecordReader(const Json& object, const RecordSpelling& spelling, Record& record)
      : object_(object), spelling_(spelling), record_(record) {}

  Status read_id() {
    for (const auto& key : keys_of(Column::kId, spelling_))
      if (const auto id = object_.find(key); id != object_.end() && !id->is_null()) record_.id = id_text(*id);
    return {};
  }

  /// A weight of the whole record multiplies those of its answers.
  Status read_record_weight() {
    for (const auto& key : keys_of(Column::kRecordWeight, spelling_)) {
      const auto found = object_.find(key);
      if (found == object_.end() || found->is_null()) continue;
      TROUPE_ASSIGN(const float weight, read_weight(*found, "key '" + key + "'"));
      for (Turn& turn : record_.turns) {
        const double product = static_cast<double>(turn.weight) * static_cast<double>(weight);
        if (product > kMostWeight)
          return invalid_argument("key '" + key + "' is " + quoted(found->dump()) + ", which with " +
                                  quoted(Json(turn.weight).dump()) + " of an answer makes " +
                                  quoted(Json(product).dump()) + "; products up to 1000 are understood");
        // A weight that is not 0 must not become it.
        turn.weight = product > 0 ? std::max(static_cast<float>(product), std::numeric_limits<float>::min()) : 0.0F;
      }
    }
    return {};
  }

  /// Keys that would change what is trained.
  Status refuse_keys() const {
    TROUPE_ASSIGN(const Found turns, present(object_, Column::kTurns, spelling_));
    const KeyPlace place = turns ? KeyPlace::kRecord : KeyPlace::kColumns;
    for (const auto& [key, value] : object_.items())
      if (const auto why = refusal_of(key, value, place, spelling_); !why.empty())
        return invalid_argument("key '" + key + "' " + std::string(why));
    if (const auto label = object_.find("label");
        label != object_.end() && *label == Json(false) && !named_by_spec("label", spelling_))
      return invalid_argument(
          "key 'label' is false, as preference data mark an answer that is not to be learned; valid: records without "
          "such answers, or columns: {ignored: label}");
    TROUPE_RETURN_IF_ERROR(refuse_record_marks(object_, spelling_));
    return refuse_weights();
  }

  Status read_images() {
    TROUPE_RETURN_IF_ERROR(refuse_media_left_out());
    TROUPE_ASSIGN(const Found found, present(object_, Column::kImages, spelling_));
    if (found && !record_.images.empty()) return refuse_both("images", found.key);
    return found ? read_image_list(*found.value, found.key, spelling_, record_.images) : Status();
  }

  /// Settings of images and videos, or, where it has none, media under keys that are not read.
  Status refuse_beside_media() const {
    if (record_.images.empty() && record_.videos.empty()) return refuse_unread_media(object_, spelling_);
    for (const char* key : kSizeSettings)
      if (holds(key))
        return invalid_argument(std::string("key '") + key +
                                "' stands beside images or videos and is not read; valid: min_pixels and max_pixels in "
                                "the spec's data, or in its data.video");
    for (const char* key : kVideoSettings)  // plainer words may be labels
      if (!record_.videos.empty() && holds(key))
        return invalid_argument(std::string("key '") + key +
                                "' stands beside a video and is not read; valid: data.video.fps, or fps beside 'path' "
                                "in the video's own object");
    return {};
  }

 private:
  /// A source that names no column of images or videos may still hold some.
  Status refuse_media_left_out() const {
    for (const auto column : {Column::kImages, Column::kVideos}) {
      if (!keys_of(column, spelling_).empty()) continue;
      for (const auto& key : keys_of(column, {}))
        if (holds(key.c_str()))
          return invalid_argument("key '" + key + "' holds something, but the columns of the source leave " +
                                  (column == Column::kImages ? "images" : "videos") +
                                  " out; valid: columns that name the key (in dataset_info.json under the entry's "
                                  "'columns'), or records without it");
    }
    return {};
  }

  /// What counts for an answer stands beside it in its turn; in the record it would be lost.
  Status refuse_weights() const {
    for (const auto& key : keys_of(Column::kWeight, spelling_))
      if (const auto found = object_.find(key); holds(key.c_str()) && *found != Json(true) && *found != Json(1))
        return invalid_argument("key '" + key + "' is " + quoted(found->dump()) +
                                " in the record and is not read there; valid: columns: {record_weight: " + key +
                                "}, or {ignored: " + key + "}");
    return {};
  }

  /// A key that is not spoken for by the spec.
  bool holds(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !is_empty(*found) && !named_by_spec(key, spelling_);
  }

  const Json& object_;
  const RecordSpelling& spelling_;
  Record& record_;
};

using MediaOf = std::function<MediaBeside()>;

/// Files that lie beside the record: its images and videos when it names none, before the first question unless the
/// text places them.
Status add_media(const MediaOf& media_of, Record& record) {
  if (!media_of || !record.images.empty() || !record.videos.empty()) return {};
  const MediaBeside beside = media_of();
  if (!beside.unread.empty())
    return invalid_argument(beside.unread +
                            ", and the record names no image and no video; valid: a record that does, "
                            "or a sample without the member");
  std::string placeholders;
  for (const auto& name : beside.names) {
    if (is_video_name(name))
      record.videos.push_back({name, {}, 0});
    else
      record.images.push_back(name);
    placeholders += std::string(is_video_name(name) ? kVideoPlaceholder : kImagePlaceholder) + "\n";
  }
  if (!media_in_order(record.turns).empty()) return {};
  for (auto& turn : record.turns) {
    if (turn.role != Role::kUser) continue;
    turn.text.insert(0, placeholders);
    break;
  }
  return {};
}

Status read_record(const Json& object, const MediaOf& beside, const RecordSpelling& spelling, Record& record) {
  if (!object.is_object()) return invalid_argument("is " + type_of(object) + ", not an object");
  RecordReader reader(object, spelling, record);
  TROUPE_RETURN_IF_ERROR(reader.read_id());
  record.named = named_columns(object, spelling);
  TROUPE_RETURN_IF_ERROR(reader.refuse_keys());
  TROUPE_RETURN_IF_ERROR(read_turns(object, spelling, record));
  TROUPE_RETURN_IF_ERROR(reader.read_record_weight());
  TROUPE_RETURN_IF_ERROR(read_videos(object, spelling, record));
  TROUPE_RETURN_IF_ERROR(reader.read_images());
  TROUPE_RETURN_IF_ERROR(add_media(beside, record));
  TROUPE_RETURN_IF_ERROR(reader.refuse_beside_media());
  bind_image_placeholders_to_videos(record);
  return check_placeholders(record);
}

}  // namespace

Status parse_record(std::string_view json, Record& record, const RecordSpelling& spelling, TextPlace begin) {
  return parse_record_with_media(json, {}, record, spelling, begin);
}

Status parse_row(const Json& object, Record& record, const RecordSpelling& spelling) {
  try {
    if (const auto broken = broken_text(object, {})) {
      if (object.is_object()) TROUPE_RETURN_IF_ERROR(RecordReader(object, spelling, record).read_id());
      return invalid_argument(*broken);
    }
    return read_record(object, {}, spelling, record);
  } catch (const Json::exception& e) {
    return invalid_argument("cannot be read: " + json_complaint(e));
  }
}

Status parse_record_with_media(std::string_view json, const MediaOf& beside, Record& record,
                               const RecordSpelling& spelling, TextPlace begin) {
  TROUPE_ASSIGN(const Json object, parse_json(json, begin));
  try {
    return read_record(object, beside, spelling, record);
  } catch (const Json::exception& e) {
    return invalid_argument("cannot be read: " + json_complaint(e));
  }
}

}  // namespace troupe
