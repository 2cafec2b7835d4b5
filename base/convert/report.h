#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/convert/conversion.h"

namespace troupe::convert {

/// What a person reads after a conversion: a line each for remarks, dropped and unknown keys, then the counts.
std::string report_text(const Conversion& conversion);

/// What --json answers: `tool`, `file`, `output` (null: none was asked for, and `yaml` holds the spec), `carried`,
/// `dropped` and `unknown` (each key with `line` and what became of it), `defaults`, `remarks`.
nlohmann::json report_json(const Conversion& conversion, const std::string& output);

}  // namespace troupe::convert
