#include "actors/data/record_turns.h"

#include <algorithm>

#include "actors/data/placeholders.h"
#include "actors/data/record_fields.h"
#include "actors/data/record_videos.h"

namespace troupe {
namespace {

using namespace record_fields;

class TurnReader {
 public:
  TurnReader(const Json& object, const RecordSpelling& spelling, Record& record)
      : object_(object), spelling_(spelling), record_(record) {}

  Status read() {
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
    return invalid_argument(no_turns());
  }

 private:
  /// Which of the columns that are read a record without turns could have had.
  std::string no_turns() const {
    const auto turns = keys_of(Column::kTurns, spelling_), answer = keys_of(Column::kAnswer, spelling_);
    auto question = keys_of(Column::kQuestion, spelling_);
    if (question.empty()) question = keys_of(Column::kInput, spelling_);
    const std::string pair = question.empty() || answer.empty()
                                 ? ""
                                 : "a question ('" + question[0] + "') with an answer ('" + answer[0] + "')";
    if (turns.empty()) return pair.empty() ? "has no column of turns" : "has no pair of " + pair;
    return (turns.size() > 1 ? "has neither '" + turns[0] + "' nor '" + turns[1] + "'" : "has no '" + turns[0] + "'") +
           (pair.empty() ? "" : ", nor " + pair);
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
    Turn out{word.role, {}};
    TROUPE_RETURN_IF_ERROR(read_turn_weight(turn, where, out));
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
  Status read_turn_weight(const Json& turn, const std::string& where, Turn& out) {
    Found first;
    for (const auto& key : keys_of(Column::kWeight, spelling_)) {
      const auto found = turn.find(key);
      if (found == turn.end() || found->is_null()) continue;
      TROUPE_ASSIGN(const float weight, read_weight(*found, where + ": '" + key + "'"));
      if (first && out.weight != weight)
        return invalid_argument(where + ": '" + first.key + "' and '" + key + "' differ");
      out.weight = weight;
      first = {key, &*found};
    }
    if (first && out.weight > 0 && out.role != Role::kAssistant)
      return invalid_argument(where + ": '" + first.key + "' asks to learn a turn of the " + role_name(out.role) +
                              ", but only answers are learned");
    return {};
  }

  /// Words written as a list of parts: {"type": "text", "text": ...}, {"type": "image", "image": PATH} and the same of
  /// a video.
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
      } else if (type == "video" || type == "video_url") {
        if (turn.role != Role::kUser) return invalid_argument(where + " holds a video, but only questions may");
        turn.text += kVideoPlaceholder;
        TROUPE_RETURN_IF_ERROR(read_video_part(part, type, where, record_.videos));
      } else {
        return invalid_argument(where + " has a part of type " + quoted(type) +
                                "; text, image, image_url, video and video_url are understood");
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
    if (question.empty() && input.empty()) {
      const auto keys = keys_of(Column::kQuestion, spelling_);
      return invalid_argument("has no question" + (keys.empty() ? "" : "; key '" + keys[0] + "' is empty"));
    }
    const bool answered = std::any_of(answer_keys_.begin(), answer_keys_.end(), [&](const auto& key) {
      return object_.contains(key) && object_.at(key).is_string();
    });
    record_.turns.push_back({Role::kUser, question + (question.empty() || input.empty() ? "" : "\n") + input});
    if (answered) record_.turns.push_back({Role::kAssistant, answer});
    return {};
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

}  // namespace

Status read_turns(const nlohmann::json& object, const RecordSpelling& spelling, Record& record) {
  TROUPE_RETURN_IF_ERROR(TurnReader(object, spelling, record).read());
  return check_order(record.turns);
}

}  // namespace troupe
