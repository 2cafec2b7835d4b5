#pragma once

#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/config/section.h"

namespace troupe {

/// An absolute path as it is, another one below `folder`; without "." and ".." and a slash at the end.
std::string resolve_path(const std::string& path, const std::string& folder);

/// The key `sources` of `section` (data or eval). `data` holds the columns and roles that all sources share; a source's
/// own go before them. A source with `datasets` names a dataset_info.json as LLaMA-Factory writes it and becomes one
/// source for each data set named. Faults go to the section's diagnostics.
std::vector<DataSource> read_data_sources(const Section& section, const Section& data, const std::string& folder);

}  // namespace troupe
