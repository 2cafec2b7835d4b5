#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"

namespace troupe {

/// What build_index of dataset.h does, without its tensor types. Samples come in the order of sources and records,
/// whatever the number of threads. Cost: one pass over the sources, one look at each image's header.
Result<SampleIndex> build_sample_index(const DataSpec& data, const std::vector<DataSource>& sources,
                                       const std::string& model_folder, const ModelConfig& config,
                                       const std::function<void(int64_t, int64_t)>& progress);

/// Whether record `record` of a source's `total` is used: the first take_records, or a fraction spread evenly over the
/// file.
bool is_taken(const DataSource& source, int64_t record, int64_t total);

}  // namespace troupe
