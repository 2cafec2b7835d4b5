#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"

/// What is no fault of a record, and still is hardly meant: words for a person. Pure functions but for the file system.
namespace troupe {

/// What the records of a source have of its columns.
struct ColumnsFound {
  uint32_t named = 0;  // BlockEntry::named of all of them
  bool samples = false;
};
/// Where the columns of sources and what their records have (one each) do not fit together. A column that is named as
/// it would be without the spec may well be absent, and one that several sources name need not be in all of them.
std::vector<std::string> column_doubts(const std::vector<DataSource>& sources, const std::vector<ColumnsFound>& found);
/// Sources that are one file.
std::vector<std::string> twice_doubts(const std::vector<DataSource>& sources);
/// Files that are trained on and evaluated on.
std::vector<std::string> shared_doubts(const std::vector<DataSource>& data, const std::vector<DataSource>& eval);

}  // namespace troupe
