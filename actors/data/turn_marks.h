#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "actors/data/record.h"

namespace troupe {

/// What keys beside a turn's words say of how it counts in the loss: sets `turn.weight`. InvalidArgument begins with
/// `where`: a mark that asks to learn what is no answer, and one under a key that is not read, unless it says what
/// holds without it.
Status read_turn_marks(const nlohmann::json& object, const RecordSpelling& spelling, const std::string& where,
                       Turn& turn);

/// InvalidArgument when a part of a turn has such a key, or one for weights, that would make it count otherwise than
/// its turn.
Status refuse_part_marks(const nlohmann::json& part, const RecordSpelling& spelling, const std::string& where,
                         Role role);

/// InvalidArgument: the record has such a mark that would leave out its answers, or some of them.
Status refuse_record_marks(const nlohmann::json& object, const RecordSpelling& spelling);

}  // namespace troupe
