#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"

/// What `troupe check` says about a job's records: problems, tokens, images, batches. Pure functions of an index, the
/// spec and the shapes.
namespace troupe {

/// Least, middle and greatest of some numbers; all zero when there are none.
struct Spread {
  int64_t least = 0, median = 0, high = 0, most = 0, total = 0;  // high: of 100 sorted values the 95th
};

/// Bad records whose reasons differ in names and numbers only.
struct BadGroup {
  std::string reason;  // names as '...', numbers as N
  int64_t records = 0;
  size_t first = 0;  // position of its first one
};

/// Samples of [from, 2 * from) tokens.
struct LengthBin {
  int64_t from = 1, samples = 0;
};

/// A source's part of the data.
struct SourceRow {
  std::string path;
  double weight = 1;
  int64_t samples = 0, epoch_samples = 0;  // held-out ones not counted; in a pass over the data
};

struct DataReport {
  int64_t records = 0, samples = 0, bad = 0, too_long = 0;  // too_long: left out by data.too_long: skip
  int64_t at_limit = 0;  // of max_sample_tokens tokens exactly: cut, with truncate_text
  int64_t text_only = 0, without_target = 0, held_out = 0;
  int64_t supervised = 0;
  Spread tokens, images, patches;  // of samples, images and videos of samples that have some, patches of each
  int64_t videos = 0;              // among them
  std::vector<LengthBin> lengths;  // ascending, without gaps
  std::vector<BadGroup> groups;    // most frequent first
  std::vector<SourceRow> sources;
  // The training that the spec asks for.
  int64_t epoch_samples = 0;  // of a pass over the data
  int64_t steps = 0, global_batch = 0, batch_tokens = 0, text_units = 0,
          vision_units = 0;  // means over the first steps
  double epochs = 0, text_imbalance = 1, vision_imbalance = 1, pack_fill = 0;
  int64_t balance_steps = 0;  // steps that the means are over
};

/// `sources`: what the index is of, data.sources or eval.sources. Cost: one pass over the samples, and plans of at most
/// 20 steps.
DataReport make_data_report(const JobSpec& spec, const std::vector<DataSource>& sources, const ModelConfig& config,
                            const SampleIndex& index);

/// Most frequent first.
std::vector<BadGroup> bad_groups(const std::vector<BadRecord>& bad);
/// The reason without what differs from record to record.
std::string reason_kind(const std::string& reason);
/// Bad records for a person: kinds with their counts and where each is first, then the first 20 by file, line, id and
/// reason. Empty when there are none.
std::string bad_records_text(const SampleIndex& index);
/// The report for a person, the bad records left out. Ends with a newline.
std::string report_text(const DataReport& report);
/// The same as JSON, with every bad record.
nlohmann::ordered_json report_json(const DataReport& report, const SampleIndex& index);

}  // namespace troupe
