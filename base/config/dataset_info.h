#pragma once

#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/result.h"

namespace troupe {

/// The named data sets of a dataset_info.json (the file in which LLaMA-Factory lists data sets) as sources: file,
/// columns, tags, number of samples. Paths are below the file's folder. Errors name the file, the data set and the key:
/// a name that is not in it, data that lie on a hub or behind a script, preference data, columns that are not read.
Result<std::vector<DataSource>> read_dataset_info(const std::string& path, const std::vector<std::string>& names);

}  // namespace troupe
