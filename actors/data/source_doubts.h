#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/index_block.h"

/// What is no fault of a record, and still is hardly meant: words for a person. Pure functions but for the file system.
namespace troupe {

/// What the records of a source have of its columns.
struct ColumnsFound {
  NamedColumns named;  // of all of them
  bool samples = false;
};
/// Where the columns of sources and what their records have (one each) do not fit together: keys that no record has
/// (but for one that is named as it would be without the spec, and one that another source has), and usual keys that
/// are not read because of a column.
std::vector<std::string> column_doubts(const std::vector<DataSource>& sources, const std::vector<ColumnsFound>& found);
/// Sources that are one file.
std::vector<std::string> twice_doubts(const std::vector<DataSource>& sources);
/// Files that are trained on and evaluated on.
std::vector<std::string> shared_doubts(const std::vector<DataSource>& data, const std::vector<DataSource>& eval);

}  // namespace troupe
