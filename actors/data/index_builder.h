#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "actors/data/block_cache.h"
#include "base/config/job_spec.h"
#include "base/data/index_progress.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"

namespace troupe {

/// What goes with the building of an index; nothing in it changes the index.
struct IndexRun {
  BlockCache* cache = nullptr;  // null: every record is read
  /// Told from the calling thread how far it is, not more often than `progress_every`, and once at the end.
  std::function<void(const IndexProgress&)> progress;
  std::chrono::milliseconds progress_every{1000};
  std::function<void(const std::string&)> warn;  // what a person should know; from any thread
};

/// Looks at every record: offsets, image sizes from headers, token counts, problems; what `run.cache` knows is not read
/// again. A record that cannot be used lands in index.bad; the caller applies data.on_bad_record. max_sample_tokens is
/// applied by data.too_long. Samples come in the order of sources and records, whatever the number of threads.
/// `sources`: data.sources, or eval.sources for the held-out data. Cost: one pass over the sources, one look at each
/// image's header; memory for the index and a few blocks.
Result<SampleIndex> build_sample_index(const DataSpec& data, const std::vector<DataSource>& sources,
                                       const std::string& model_folder, const ModelConfig& config,
                                       const IndexRun& run = {});

}  // namespace troupe
