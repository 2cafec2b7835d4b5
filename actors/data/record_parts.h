#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "actors/data/record.h"

namespace troupe {

/// What the parts of a record's turns said so far of the images of its list.
struct PartNumbers {
  std::optional<double> last;
};

/// Adds words that are written as a list of parts, {"type": "text", "text": ...}, {"type": "image", "image": PATH} and
/// the same of a video, to the turn's text, and the images and videos that the parts name themselves to the record.
/// InvalidArgument begins with `where`. Throws what nlohmann's accessors throw.
Status read_parts(const nlohmann::json& parts, const std::string& where, const RecordSpelling& spelling, Turn& turn,
                  Record& record, PartNumbers& numbers);

}  // namespace troupe
