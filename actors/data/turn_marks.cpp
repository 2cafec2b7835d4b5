#include "actors/data/turn_marks.h"

#include <cctype>
#include <optional>

#include "actors/data/record_fields.h"

namespace troupe {
namespace {

using namespace record_fields;

/// What a mark says: true, false, 1 or 0, also as words.
std::optional<bool> switch_of(const Json& value) {
  for (const bool on : {true, false})
    if (value == Json(on) || value == Json(on ? 1 : 0)) return on;
  if (!value.is_string()) return std::nullopt;
  std::string word = value.get<std::string>();
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "true" || word == "yes" || word == "1") return true;
  if (word == "false" || word == "no" || word == "0") return false;
  return std::nullopt;
}

Status refuse_unread_marks(const Json& object, const RecordSpelling& spelling, const std::string& where, Role role) {
  const auto weights = keys_of(Column::kWeight, spelling);
  for (const LossMark& mark : loss_marks()) {
    const auto found = object.find(mark.key);
    if (found == object.end() || is_empty(*found) || named_by_spec(mark.key, spelling)) continue;
    const auto says = switch_of(*found);
    // What changes nothing: an answer that is learned, another turn that is not asked to be.
    if (says && (role == Role::kAssistant ? *says == mark.learn : !mark.learn || !*says)) continue;
    return invalid_argument(
        where + ": '" + mark.key + "' is " + quoted(found->dump()) + " and is not read" +
        (weights.empty() ? "" : "; '" + weights[0] + "' says what an answer counts (0: it is not learned)"));
  }
  return {};
}

}  // namespace

Status refuse_part_marks(const Json& part, const RecordSpelling& spelling, const std::string& where, Role role) {
  for (const auto& key : keys_of(Column::kWeight, spelling))
    if (const auto found = part.find(key); found != part.end() && !is_empty(*found))
      if (switch_of(*found) != (role == Role::kAssistant))
        return invalid_argument(where + " has a part with '" + key + "', which is not read there; valid: '" + key +
                                "' of the whole turn");
  return refuse_unread_marks(part, spelling, where + " has a part", role);
}

Status refuse_record_marks(const Json& object, const RecordSpelling& spelling) {
  for (const LossMark& mark : loss_marks()) {
    const auto found = object.find(mark.key);
    if (!mark.record || found == object.end() || is_empty(*found) || named_by_spec(mark.key, spelling)) continue;
    if (found->is_string() && !switch_of(*found)) continue;  // the name of a part of the data
    if (switch_of(*found) == mark.learn) continue;
    return invalid_argument("key '" + std::string(mark.key) + "' is " + quoted(found->dump()) +
                            " in the record and is not read there; valid: 'loss' beside each answer, columns: "
                            "{record_weight: " +
                            mark.key + "}, or {ignored: " + mark.key + "}");
  }
  return {};
}

Status read_turn_marks(const Json& object, const RecordSpelling& spelling, const std::string& where, Turn& turn) {
  Found first;
  for (const auto& key : keys_of(Column::kWeight, spelling)) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) continue;
    TROUPE_ASSIGN(const float weight, read_weight(*found, where + ": '" + key + "'"));
    if (first && turn.weight != weight)
      return invalid_argument(where + ": '" + first.key + "' and '" + key + "' differ");
    turn.weight = weight;
    first = {key, &*found};
  }
  if (first && turn.weight > 0 && turn.role != Role::kAssistant)
    return invalid_argument(where + ": '" + first.key + "' asks to learn a turn of the " + role_name(turn.role) +
                            ", but only answers are learned");
  return refuse_unread_marks(object, spelling, where, turn.role);
}

}  // namespace troupe
