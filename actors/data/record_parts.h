#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/data/record.h"

namespace troupe {

/// Of each part of a record that takes its image from the record's list, which one it says that it is.
using PartNumbers = std::vector<std::optional<double>>;
/// InvalidArgument: one says that it is another than the one that it takes, which is the next. Numbers of all of them
/// may count from anywhere and leave some out, as long as they ascend.
Status check_numbers(const PartNumbers& numbers);

/// Adds words that are written as a list of parts, {"type": "text", "text": ...}, {"type": "image", "image": PATH} and
/// the same of a video, to the turn's text, and the images and videos that the parts name themselves to the record.
/// InvalidArgument begins with `where`. Throws what nlohmann's accessors throw.
Status read_parts(const nlohmann::json& parts, const std::string& where, const RecordSpelling& spelling, Turn& turn,
                  Record& record, PartNumbers& numbers);

}  // namespace troupe
