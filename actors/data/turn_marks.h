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

}  // namespace troupe
