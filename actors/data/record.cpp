#include "actors/data/record.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/data/record_table.h"
#include "base/json_text.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr size_t kQuotedBytes = 60;  // of a value in a message

std::string quoted(std::string s) {
  if (s.size() > kQuotedBytes) {
    size_t end = kQuotedBytes;
    while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xC0u) == 0x80u) --end;
    s = s.substr(0, end) + "...";
  }
  return "'" + s + "'";
}

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_array() && value.empty());
}

/// A key of the object and its value.
struct Found {
  std::string key;
  const Json* value = nullptr;
  explicit operator bool() const { return value != nullptr; }
};

/// The column's value where it holds something; not null, "" or [].
Found present(const Json& object, Column column, const RecordSpelling& spelling) {
  for (const auto& key : keys_of(column, spelling))
    if (const auto found = object.find(key); found != object.end() && !is_empty(*found)) return {key, &*found};
  return {};
}

Status wrong_type(const std::string& key, const Json& value, const char* understood) {
  return invalid_argument("key '" + key + "' is a " + value.type_name() + "; " + understood + " is understood");
}

/// A string that may be missing.
Status read_string(const Found& found, std::string& out) {
  if (!found) return {};
  if (!found.value->is_string()) return wrong_type(found.key, *found.value, "a string");
  out = found.value->get<std::string>();
  return {};
}

/// An item of a list of images: a path, or an object with `path` or with `bytes` in base64.
Status read_image(const Json& item, const std::string& key, std::vector<std::string>& images) {
  if (item.is_string() && !item.get_ref<const std::string&>().empty()) {
    images.push_back(item.get<std::string>());
    return {};
  }
  if (item.is_object()) {
    const auto bytes = item.find("bytes"), path = item.find("path");
    if (bytes != item.end() && bytes->is_string()) {
      images.push_back("data:;base64," + bytes->get<std::string>());
      return {};
    }
    if (path != item.end() && path->is_string() && !path->get_ref<const std::string&>().empty()) {
      images.push_back(path->get<std::string>());
      return {};
    }
  }
  return invalid_argument("key '" + key + "' holds " +
                          (item.is_string() ? "an empty path" : std::string("a ") + item.type_name()) +
                          "; paths, data URIs and objects with 'path' or 'bytes' are understood");
}

Status read_image_list(const Json& value, const std::string& key, std::vector<std::string>& images) {
  if (!value.is_array()) {
    if (value.is_string() || value.is_object()) return read_image(value, key, images);
    return wrong_type(key, value, "a path or a list of paths");
  }
  for (const auto& item : value) TROUPE_RETURN_IF_ERROR(read_image(item, key, images));
  return {};
}

bool looks_like_picture(const Json& value) {
  if (value.is_array()) return std::any_of(value.begin(), value.end(), looks_like_picture);
  if (!value.is_string()) return false;
  const std::string& s = value.get_ref<const std::string&>();
  for (const std::string_view end : {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}) {
    const size_t from = s.size() - std::min(s.size(), end.size());
    const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    if (std::equal(s.begin() + static_cast<std::ptrdiff_t>(from), s.end(), end.begin(), end.end(), same)) return true;
  }
  return false;
}

constexpr const char* kWeightsUnderstood =
    "; true or 1 (the answer is learned), false or 0 (it is not) and numbers up to 1000 are understood";

/// What a value says of how much an answer counts; empty: it says nothing that is understood.
std::optional<float> weight_of(const Json& value) {
  constexpr double kMost = 1000;
  if (value.is_boolean()) return value.get<bool>() ? 1.0F : 0.0F;
  if (!value.is_number()) return std::nullopt;
  const auto weight = value.get<double>();
  if (!(weight >= 0 && weight <= kMost)) return std::nullopt;
  const auto rounded = static_cast<float>(weight);
  // A weight that is not 0 must not become it.
  return weight > 0 ? std::max(rounded, std::numeric_limits<float>::min()) : 0.0F;
}

/// Reads and judges the fields of one record.
class RecordReader {
 public:
  RecordReader(const Json& object, const RecordSpelling& spelling, Record& record)
      : object_(object), spelling_(spelling), record_(record) {}

  Status read_id() {
    for (const auto& key : keys_of(Column::kId, spelling_))
      if (const auto id = object_.find(key); id != object_.end() && !id->is_null())
        record_.id = id->is_string() ? id->get<std::string>() : id->dump();
    return {};
  }

  Status read_turns() {
    std::string system;
    TROUPE_RETURN_IF_ERROR(read_string(present(object_, Column::kSystem, spelling_), system));
    if (!system.empty()) record_.turns.push_back({Role::kSystem, system});
    std::vector<std::string> held;
    for (const auto& key : keys_of(Column::kTurns, spelling_))
      if (object_.contains(key)) held.push_back(key);
    if (held.size() > 1) return invalid_argument("has both '" + held[0] + "' and '" + held[1] + "'");
    if (held.size() == 1) return read_turn_list(held[0]);
    if (present(object_, Column::kQuestion, spelling_) || present(object_, Column::kAnswer, spelling_))
      return read_columns();
    const auto turns = keys_of(Column::kTurns, spelling_), question = keys_of(Column::kQuestion, spelling_),
               answer = keys_of(Column::kAnswer, spelling_);
    return invalid_argument(
        (turns.size() > 1 ? "has neither '" + turns[0] + "' nor '" + turns[1] + "'" : "has no '" + turns[0] + "'") +
        ", nor a question ('" + question[0] + "') with an answer ('" + answer[0] + "')");
  }

  /// A weight of the whole record multiplies those of its answers.
  Status read_record_weight() {
    for (const auto& key : keys_of(Column::kRecordWeight, spelling_)) {
      const auto found = object_.find(key);
      if (found == object_.end() || found->is_null()) continue;
      const auto weight = weight_of(*found);
      if (!weight) return invalid_argument("key '" + key + "' is " + quoted(found->dump()) + kWeightsUnderstood);
      for (Turn& turn : record_.turns) turn.weight *= *weight;
    }
    return {};
  }

  Status read_images() {
    const auto keys = keys_of(Column::kImages, spelling_);
    for (const auto& [key, value] : object_.items())
      if (const auto why = refusal_of_key(key); !why.empty() && !is_empty(value) && !named_by_spec(key))
        return invalid_argument("key '" + key + "' " + std::string(why));
    Found first;
    for (const auto& key : keys) {
      const auto found = object_.find(key);
      if (found == object_.end() || is_empty(*found)) continue;
      std::vector<std::string> images;
      TROUPE_RETURN_IF_ERROR(read_image_list(*found, key, images));
      if (!first) {
        record_.images.insert(record_.images.end(), images.begin(), images.end());
      } else if (*first.value != *found) {
        return invalid_argument("has both '" + first.key + "' and '" + key + "', and they differ");
      }
      first = {key, &*found};
    }
    if (first || !record_.images.empty()) return {};
    // Pictures under a key that is not read must not vanish silently.
    for (const auto& [key, value] : object_.items())
      if (looks_like_picture(value))
        return invalid_argument("key '" + key +
                                "' names pictures but is not read; use 'image' or 'images', or the spec's columns");
    return {};
  }

 private:
  bool named_by_spec(const std::string& key) const {
    return std::any_of(spelling_.columns.begin(), spelling_.columns.end(),
                       [&](const auto& column) { return column.second == key; });
  }

  Status read_turn_list(const std::string& key) {
    const Json& list = object_.at(key);
    if (is_empty(list)) return invalid_argument("'" + key + "' is empty");
    if (!list.is_array())
      return invalid_argument("'" + key + "' is a " + std::string(list.type_name()) + ", not a list of turns");
    for (size_t i = 0; i < list.size(); ++i) TROUPE_RETURN_IF_ERROR(read_turn(list[i], i + 1));
    return {};
  }

  /// The role and the words stand under the same pair of keys: from with value, role with content.
  Status read_turn(const Json& turn, size_t number) {
    const std::string where = "turn " + std::to_string(number);
    if (!turn.is_object())
      return invalid_argument(where + " is a " + std::string(turn.type_name()) + ", not an object");
    const auto role_keys = keys_of(Column::kRole, spelling_), text_keys = keys_of(Column::kContent, spelling_);
    size_t pair = 0;
    for (size_t i = role_keys.size(); i-- > 0;)
      if (turn.contains(role_keys[i])) pair = i;
    const auto& role_key = role_keys[pair];
    const auto& text_key = text_keys[std::min(pair, text_keys.size() - 1)];
    const auto role = turn.find(role_key), text = turn.find(text_key);
    if (role == turn.end() || !role->is_string()) return invalid_argument(where + " has no '" + role_key + "'");
    const auto word = speaker_of(role->get_ref<const std::string&>(), spelling_);
    if (!word.known)
      return invalid_argument(where + " is by " + quoted(role->get<std::string>()) + "; " + speaker_words(spelling_) +
                              " are understood");
    if (text == turn.end()) return invalid_argument(where + " has no '" + text_key + "'");
    Turn out{role_of(word.speaker), {}};
    TROUPE_RETURN_IF_ERROR(read_weight(turn, where, out));
    if (text->is_array() && !text->empty()) {
      TROUPE_RETURN_IF_ERROR(read_parts(*text, where, out));
    } else if (!text->is_string()) {
      return invalid_argument(where + ": '" + text_key + "' is a " + text->type_name() +
                              "; a string or a list of parts is understood");
    } else {
      out.text = text->get<std::string>();
    }
    record_.turns.push_back(std::move(out));
    return {};
  }

  /// What an answer's tokens count in the loss: 1, which is what holds without a word about it, or any other weight.
  Status read_weight(const Json& turn, const std::string& where, Turn& out) {
    Found first;
    for (const auto& key : keys_of(Column::kWeight, spelling_)) {
      const auto found = turn.find(key);
      if (found == turn.end() || found->is_null()) continue;
      const auto weight = weight_of(*found);
      if (!weight) return invalid_argument(where + ": '" + key + "' is " + quoted(found->dump()) + kWeightsUnderstood);
      if (first && out.weight != *weight)
        return invalid_argument(where + ": '" + first.key + "' and '" + key + "' differ");
      out.weight = *weight;
      first = {key, &*found};
    }
    if (first && out.weight > 0 && out.role != Role::kAssistant)
      return invalid_argument(where + ": '" + first.key + "' asks to learn a turn of the " + role_name(out.role) +
                              ", but only answers are learned");
    return {};
  }

  /// Words written as a list of parts: {"type": "text", "text": ...} and {"type": "image", "image": PATH}.
  Status read_parts(const Json& parts, const std::string& where, Turn& turn) {
    for (const auto& part : parts) {
      const std::string type =
          part.is_object() && part.contains("type") && part["type"].is_string() ? part["type"].get<std::string>() : "";
      if (type == "text" && part.contains("text") && part["text"].is_string()) {
        turn.text += part["text"].get<std::string>();
      } else if (type == "image" || type == "image_url") {
        if (turn.role != Role::kUser) return invalid_argument(where + " holds an image, but only questions may");
        turn.text += kImagePlaceholder;
        const auto image = part.find(type);
        if (image == part.end() || image->is_null()) continue;  // the record's list of images has it
        const Json& path = image->is_object() && image->contains("url") ? image->at("url") : *image;
        TROUPE_RETURN_IF_ERROR(read_image(path, where + "." + type, record_.images));
      } else {
        return invalid_argument(where + " has a part of type " + quoted(type) +
                                "; text, image and image_url are understood");
      }
    }
    return {};
  }

  /// A question and an answer in columns of their own, with earlier pairs in `history`.
  Status read_columns() {
    const auto history = present(object_, Column::kHistory, spelling_);
    if (history && !history.value->is_array()) return wrong_type(history.key, *history.value, "a list of pairs");
    for (const auto& pair : history ? *history.value : Json::array()) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
        return invalid_argument("key '" + history.key + "' holds something that is no pair of question and answer");
      record_.turns.push_back({Role::kUser, pair[0].get<std::string>()});
      record_.turns.push_back({Role::kAssistant, pair[1].get<std::string>()});
    }
    std::string question, input, answer;
    TROUPE_RETURN_IF_ERROR(read_string(present(object_, Column::kQuestion, spelling_), question));
    TROUPE_RETURN_IF_ERROR(read_string(present(object_, Column::kInput, spelling_), input));
    TROUPE_RETURN_IF_ERROR(read_string(present(object_, Column::kAnswer, spelling_), answer));
    if (question.empty() && input.empty())
      return invalid_argument("has no question; key '" + keys_of(Column::kQuestion, spelling_)[0] + "' is empty");
    const bool answered = std::any_of(answer_keys_.begin(), answer_keys_.end(), [&](const auto& key) {
      return object_.contains(key) && object_.at(key).is_string();
    });
    record_.turns.push_back({Role::kUser, question + (question.empty() || input.empty() ? "" : "\n") + input});
    if (answered) record_.turns.push_back({Role::kAssistant, answer});
    return {};
  }

  static Role role_of(Speaker speaker) {
    switch (speaker) {
      case Speaker::kUser:
        return Role::kUser;
      case Speaker::kAssistant:
        return Role::kAssistant;
      case Speaker::kSystem:
        return Role::kSystem;
      case Speaker::kTool:
        return Role::kTool;
    }
    return Role::kUser;
  }

  const Json& object_;
  const RecordSpelling& spelling_;
  Record& record_;
  const std::vector<std::string> answer_keys_ = keys_of(Column::kAnswer, spelling_);
};

Status check_order(const std::vector<Turn>& turns) {
  const size_t first = !turns.empty() && turns[0].role == Role::kSystem ? 1 : 0;
  if (turns.size() == first) return invalid_argument("has no turn besides the system's");
  for (size_t i = first; i < turns.size(); ++i) {
    const Role role = turns[i].role;
    if (role == Role::kSystem) return invalid_argument("has a system turn that is not the first");
    if (i == first) {
      if (role == Role::kAssistant) return invalid_argument("starts with an answer; a question must come first");
      if (role == Role::kTool) return invalid_argument("starts with a tool's turn; a question must come first");
      continue;
    }
    const Role before = turns[i - 1].role;
    if (role == Role::kTool && before == Role::kUser)
      return invalid_argument("has a tool's turn behind a question; the answer that calls the tool must come between");
    if (role == Role::kUser && before == Role::kTool)
      return invalid_argument("has a question behind a tool's turn; an answer must come between");
    if (role == before && role != Role::kTool)
      return invalid_argument(std::string("has two ") + role_name(role) + " turns in a row; they must alternate");
  }
  if (turns.back().role == Role::kTool) return invalid_argument("ends with a tool's turn that has no answer");
  if (turns.back().role != Role::kAssistant) return invalid_argument("ends with a question that has no answer");
  return {};
}

Status check_placeholders(const Record& record) {
  const size_t placeholders = count_placeholders(record), images = record.images.size();
  if (placeholders == images) return {};
  return invalid_argument(std::to_string(placeholders) + " " + std::string(kImagePlaceholder) +
                          (placeholders == 1 ? " placeholder" : " placeholders") + " in the user turns, but " +
                          std::to_string(images) + (images == 1 ? " image" : " images"));
}

/// Pictures that lie beside the record: its images when it names none, before the first question unless the text places
/// them.
void add_pictures(const std::vector<std::string>& pictures, Record& record) {
  if (!record.images.empty() || pictures.empty()) return;
  record.images = pictures;
  if (count_placeholders(record) > 0) return;
  std::string placeholders;
  for (size_t i = 0; i < pictures.size(); ++i) placeholders += std::string(kImagePlaceholder) + "\n";
  for (auto& turn : record.turns) {
    if (turn.role != Role::kUser) continue;
    turn.text.insert(0, placeholders);
    return;
  }
}

Status read_record(const Json& object, const std::vector<std::string>& pictures, const RecordSpelling& spelling,
                   Record& record) {
  if (!object.is_object()) return invalid_argument("is a " + std::string(object.type_name()) + ", not an object");
  RecordReader reader(object, spelling, record);
  TROUPE_RETURN_IF_ERROR(reader.read_id());
  TROUPE_RETURN_IF_ERROR(reader.read_turns());
  TROUPE_RETURN_IF_ERROR(reader.read_record_weight());
  TROUPE_RETURN_IF_ERROR(check_order(record.turns));
  TROUPE_RETURN_IF_ERROR(reader.read_images());
  add_pictures(pictures, record);
  return check_placeholders(record);
}

}  // namespace

const char* role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "?";
}

size_t count_placeholders(const Record& record) {
  size_t n = 0;
  for (const auto& turn : record.turns) {
    if (turn.role != Role::kUser) continue;
    for (size_t at = turn.text.find(kImagePlaceholder); at != std::string::npos;
         at = turn.text.find(kImagePlaceholder, at + kImagePlaceholder.size()))
      ++n;
  }
  return n;
}

Status parse_record(std::string_view json, Record& record, const RecordSpelling& spelling, TextPlace begin) {
  return parse_record_with_pictures(json, {}, record, spelling, begin);
}

Status parse_record_with_pictures(std::string_view json, const std::vector<std::string>& pictures, Record& record,
                                  const RecordSpelling& spelling, TextPlace begin) {
  TROUPE_ASSIGN(const Json object, parse_json(json, begin));
  try {
    return read_record(object, pictures, spelling, record);
  } catch (const Json::exception& e) {
    return invalid_argument("cannot be read: " + json_complaint(e));
  }
}

}  // namespace troupe
