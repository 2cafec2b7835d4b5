#include "actors/data/turn_marks.h"

#include <array>
#include <optional>

#include "actors/data/record_fields.h"

namespace troupe {
namespace {

using namespace record_fields;

/// Words of other programs, of which some leave out what is marked and others what is not.
struct Mark {
  const char* key;
  bool learn;  // what true and 1 ask for
};
constexpr std::array<Mark, 12> kUnreadMarks{{{"train", true},
                                             {"trainable", true},
                                             {"training", true},
                                             {"learn", true},
                                             {"supervised", true},
                                             {"loss_mask", true},
                                             {"loss_weight", true},
                                             {"mask", false},
                                             {"masked", false},
                                             {"is_masked", false},
                                             {"ignore_loss", false},
                                             {"no_loss", false}}};

/// What a mark says: true, false, 1 or 0, also as words.
std::optional<bool> switch_of(const Json& value) {
  for (const bool on : {true, false})
    if (value == Json(on) || value == Json(on ? 1 : 0) || value == Json(on ? "true" : "false")) return on;
  return std::nullopt;
}

Status refuse_unread_marks(const Json& object, const RecordSpelling& spelling, const std::string& where, Role role) {
  const auto weights = keys_of(Column::kWeight, spelling);
  for (const Mark& mark : kUnreadMarks) {
    const auto found = object.find(mark.key);
    if (found == object.end() || is_empty(*found) || named_by_spec(mark.key, spelling)) continue;
    // The value that changes nothing.
    if (switch_of(*found) == ((role == Role::kAssistant) == mark.learn)) continue;
    return invalid_argument(
        where + ": '" + mark.key + "' is " + quoted(found->dump()) + " and is not read" +
        (weights.empty() ? "" : "; '" + weights[0] + "' says what an answer counts (0: it is not learned)"));
  }
  return {};
}

}  // namespace

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
