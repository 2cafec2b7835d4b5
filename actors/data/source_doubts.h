#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"

/// What is no fault of a record, and still is hardly meant: words for a person. Pure functions but for the file system.
namespace troupe {

/// Where the columns of a source and what its records have (BlockEntry::named) do not fit together. A column that is
/// named as it would be without the spec may well be absent.
std::vector<std::string> column_doubts(const DataSource& source, uint32_t named);
/// Sources that are one file: weight is what gives its records more often, and what eval.split holds out of one would
/// be trained from the other.
std::vector<std::string> twice_doubts(const std::vector<DataSource>& sources);

}  // namespace troupe
