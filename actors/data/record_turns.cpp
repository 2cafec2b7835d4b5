#include "actors/data/record_turns.h"

#include <algorithm>

#include "actors/data/record_fields.h"
#include "actors/data/record_parts.h"
#include "actors/data/turn_marks.h"

namespace troupe {
namespace {

using namespace record_fields;

class TurnReader {
 public:
  TurnReader(const Json& object, const RecordSpelling& spelling, Record& record)
      : object_(object), spelling_(spelling), record_(record) {}

  Status read() {
    TROUPE_ASSIGN(const std::string system, read_string(Column::kSystem));
    if (!system.empty()) record_.turns.push_back({Role::kSystem, system});
    TROUPE_ASSIGN(const Found list, present(object_, Column::kTurns, spelling_));
    if (list) return read_turn_list(list, !system.empty());
    TROUPE_ASSIGN(const Found asked, present(object_, Column::kQuestion, spelling_));
    TROUPE_ASSIGN(const Found answered, present(object_, Column::kAnswer, spelling_));
    if (asked || answered) return read_columns();
    for (const auto& key : keys_of(Column::kTurns, spelling_))
      if (object_.contains(key)) return invalid_argument("'" + key + "' is empty");
    return invalid_argument(no_turns());
  }

 private:
  /// Which of the columns that are read a record without turns could have had.
  std::string no_turns() const {
    const bool list = !object_.empty() && std::all_of(object_.begin(), object_.end(), [](const Json& entry) {
      return entry.is_object() && (entry.contains("file_name") || entry.contains("hf_hub_url"));
    });
    if (list)
      return "is a list of data sets as LLaMA-Factory keeps it; valid: datasets: [NAMES] beside the source's path";
    const auto turns = keys_of(Column::kTurns, spelling_), answer = keys_of(Column::kAnswer, spelling_);
    auto question = keys_of(Column::kQuestion, spelling_);
    if (question.empty()) question = keys_of(Column::kInput, spelling_);
    const std::string pair = question.empty() || answer.empty()
                                 ? ""
                                 : "a question ('" + question[0] + "') with an answer ('" + answer[0] + "')";
    if (turns.empty()) return pair.empty() ? "has no column of turns" : "has no pair of " + pair;
    return (turns.size() > 1 ? "has neither '" + turns[0] + "' nor '" + turns[1] + "'" : "has no '" + turns[0] + "'") +
           (pair.empty() ? "" : ", nor " + pair) + "; " + keys_text(object_) +
           "; valid: the spec's columns, which say what others hold: {turns: KEY}, or {question: KEY, answer: KEY}";
  }

  /// `system`: whether a key beside the list has the system's words.
  Status read_turn_list(const Found& found, bool system) {
    const Json& list = *found.value;
    if (!list.is_array()) return invalid_argument("'" + found.key + "' is " + type_of(list) + ", not a list of turns");
    for (size_t i = 0; i < list.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(read_turn(list[i], i + 1));
      if (!system || record_.turns.back().role != Role::kSystem) continue;
      if (record_.turns.back().text != record_.turns.front().text)
        return invalid_argument("has the key '" + keys_of(Column::kSystem, spelling_)[0] + "' and turn " +
                                std::to_string(i + 1) + " is the system's too, and they differ");
      if (record_.turns.size() == 2) record_.turns.pop_back();
    }
    TROUPE_RETURN_IF_ERROR(check_numbers(numbers_));
    return refuse_columns_beside(found.key);
  }

  /// A question or an answer in columns beside a list of turns would be lost, unless it is a turn's, or no words at
  /// all, or the spec says where the turns are.
  Status refuse_columns_beside(const std::string& turns) const {
    const auto is_turn = [&](const Json& words) {
      return std::any_of(record_.turns.begin(), record_.turns.end(),
                         [&](const Turn& turn) { return words == Json(turn.text); });
    };
    for (const auto column : {Column::kQuestion, Column::kInput, Column::kAnswer, Column::kHistory})
      for (const auto& key : keys_of(column, spelling_))
        if (const auto found = object_.find(key);
            found != object_.end() && !holds_nothing(*found) && (found->is_string() || found->is_structured()) &&
            !is_turn(*found) && (spelling_.columns.count("turns") == 0 || named_by_spec(key, spelling_)))
          return invalid_argument("has both '" + turns + "' and '" + key +
                                  "'; a list of turns stands alone, or the spec says columns: {turns: " + turns + "}");
    return {};
  }

  /// Keys that would change what is trained, and media, which belong into parts or into the record's lists.
  Status refuse_keys(const Json& turn, const std::string& where) const {
    for (const auto& [key, value] : turn.items())
      if (const auto why = refusal_of(key, value, KeyPlace::kTurn, spelling_); !why.empty())
        return invalid_argument(where + ": key '" + key + "' " + std::string(why));
    for (const auto column : {Column::kImages, Column::kVideos})
      for (const auto& key : keys_of(column, spelling_))
        if (const auto found = turn.find(key); found != turn.end() && !holds_nothing(*found))
          return invalid_argument(where + ": key '" + key + "' is not read there; valid: '" + key +
                                  "' of the record, or a part of the turn's words");
    return {};
  }

  /// A turn in both spellings must say the same in them.
  Status refuse_other_spelling(const Json& turn, Role role, const Json& words, const std::string& where) const {
    for (const auto& key : keys_of(Column::kRole, spelling_)) {
      const auto other = turn.find(key);
      if (other == turn.end() || !other->is_string()) continue;
      const auto word = speaker_of(other->get_ref<const std::string&>(), spelling_);
      if (word.known && word.role != role)
        return invalid_argument(where + " is by a " + role_name(role) + " and by '" + key + "': " + quoted(*other));
    }
    for (const auto& key : keys_of(Column::kContent, spelling_)) {
      const auto other = turn.find(key);
      if (other == turn.end() || is_empty(*other) || !(other->is_string() || other->is_array())) continue;
      if (*other != words)
        return invalid_argument(where + ": '" + key + "' differs from the turn's words under its other name");
    }
    return {};
  }

  /// The role and the words stand under the same pair of keys: from with value, role with content.
  Status read_turn(const Json& turn, size_t number) {
    const std::string where = "turn " + std::to_string(number);
    if (!turn.is_object()) return invalid_argument(where + " is " + type_of(turn) + ", not an object");
    TROUPE_RETURN_IF_ERROR(refuse_keys(turn, where));
    const auto role_keys = keys_of(Column::kRole, spelling_), text_keys = keys_of(Column::kContent, spelling_);
    size_t pair = 0;
    for (size_t i = role_keys.size(); i-- > 0;)
      if (turn.contains(role_keys[i]) && !turn.at(role_keys[i]).is_null()) pair = i;
    const auto& role_key = role_keys[pair];
    const auto& text_key = text_keys[std::min(pair, text_keys.size() - 1)];
    const auto role = turn.find(role_key), text = turn.find(text_key);
    if (role == turn.end() || !role->is_string())
      return invalid_argument(where + " has no '" + role_key + "'; " + keys_text(turn) +
                              "; valid: columns: {role: KEY} in the spec");
    const auto word = speaker_of(role->get_ref<const std::string&>(), spelling_);
    if (!word.known)
      return invalid_argument(where + " is by " + quoted(role->get<std::string>()) + "; " + speaker_words(spelling_) +
                              " are understood; valid: the spec's roles, which say who others are: {WORD: user}");
    if (text == turn.end())
      return invalid_argument(where + " has no '" + text_key + "'; " + keys_text(turn) +
                              "; valid: columns: {content: KEY} in the spec");
    Turn out{word.role, {}};
    TROUPE_RETURN_IF_ERROR(refuse_other_spelling(turn, word.role, *text, where));
    TROUPE_RETURN_IF_ERROR(read_turn_marks(turn, spelling_, where, out));
    if (text->is_array() && !text->empty()) {
      TROUPE_RETURN_IF_ERROR(read_parts(*text, where, spelling_, out, record_, numbers_));
    } else if (!text->is_string()) {
      return invalid_argument(where + ": '" + text_key + "' is " + type_of(*text) +
                              "; a string or a list of parts is understood");
    } else {
      out.text = text->get<std::string>();
    }
    record_.turns.push_back(std::move(out));
    return {};
  }

  /// A question and an answer in columns of their own, with earlier pairs in `history`.
  Status read_columns() {
    TROUPE_ASSIGN(const Found history, present(object_, Column::kHistory, spelling_));
    if (history && !history.value->is_array()) return wrong_type(history.key, *history.value, "a list of pairs");
    for (const auto& pair : history ? *history.value : Json::array()) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
        return invalid_argument("key '" + history.key + "' holds something that is no pair of question and answer");
      record_.turns.push_back({Role::kUser, pair[0].get<std::string>()});
      record_.turns.push_back({Role::kAssistant, pair[1].get<std::string>()});
    }
    TROUPE_ASSIGN(const std::string question, read_string(Column::kQuestion));
    TROUPE_ASSIGN(const std::string input, read_string(Column::kInput));
    TROUPE_ASSIGN(const std::string answer, read_string(Column::kAnswer));
    if (question.empty() && input.empty()) {
      for (const auto& key : keys_of(Column::kQuestion, spelling_))
        if (object_.contains(key)) return invalid_argument("has no question; key '" + key + "' is empty");
      return invalid_argument("has no question; " + keys_text(object_) +
                              "; valid: columns: {question: KEY} in the spec");
    }
    const bool answered = std::any_of(answer_keys_.begin(), answer_keys_.end(), [&](const auto& key) {
      return object_.contains(key) && object_.at(key).is_string();
    });
    record_.turns.push_back({Role::kUser, question + (question.empty() || input.empty() ? "" : "\n") + input});
    if (answered) record_.turns.push_back({Role::kAssistant, answer});
    return {};
  }

  /// Empty when it is missing.
  Result<std::string> read_string(Column column) const {
    TROUPE_ASSIGN(const Found found, present(object_, column, spelling_));
    if (!found) return std::string();
    if (!found.value->is_string()) return wrong_type(found.key, *found.value, "a string").error();
    return found.value->get<std::string>();
  }

  const Json& object_;
  const RecordSpelling& spelling_;
  Record& record_;
  PartNumbers numbers_;
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
