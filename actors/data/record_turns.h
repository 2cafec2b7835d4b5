#pragma once

#include <nlohmann/json.hpp>

#include "actors/data/record.h"

namespace troupe {

/// Reads the turns of a record's object, from a list of turns or from a question and an answer in columns of their own,
/// and the images and videos that stand in them as parts; checks their order. The message of InvalidArgument is the
/// reason for the report. Throws what nlohmann's accessors throw.
Status read_turns(const nlohmann::json& object, const RecordSpelling& spelling, Record& record);

}  // namespace troupe
