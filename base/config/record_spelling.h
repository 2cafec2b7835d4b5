#pragma once

#include <string_view>
#include <vector>

#include "base/config/job_spec.h"

/// What a spelling's `columns` say beside one key for each meaning. Pure functions.
namespace troupe {

/// The keys that mean nothing (columns: {ignored: "a, b"}); views into the spelling.
std::vector<std::string_view> ignored_keys(const RecordSpelling& spelling);
/// Whether the key is one of them. Allocates nothing: it is asked for every key of a record.
bool is_ignored(std::string_view key, const RecordSpelling& spelling);
/// Whether what the column names stands in turns; in the record the same key is another one, which may be ignored.
bool is_turn_column(std::string_view name);

}  // namespace troupe
