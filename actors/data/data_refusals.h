#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/sample_index.h"

/// What the index task (so `run` and `eval`) and `troupe check` alike say of data that cannot be used as a job asks:
/// the one place of these rules. Pure functions.
namespace troupe {

/// What the rules look at.
struct DataCounts {
  int64_t records = 0, bad = 0, samples = 0, held_out = 0, supervised = 0;  // of data.sources
  int64_t longest = 0;                                                      // tokens of the longest sample
  std::string longest_id;
  struct Source {
    int64_t samples = 0, epoch_samples = 0;  // held-out ones not counted; epoch_samples: in a data epoch, by its weight
    int64_t all = 0;                         // held-out ones too
  };
  std::vector<Source> sources;
  int64_t epoch_samples = 0;  // of all of them
  // What evaluation looks at: eval.sources, or what is held out.
  bool eval_known = false;
  int64_t eval_records = 0, eval_bad = 0, eval_samples = 0, eval_supervised = 0;
};
/// `eval`: the index of eval.sources; null when there are none or nobody asks. Cost: one pass over the samples.
DataCounts count_data(const JobSpec& spec, const SampleIndex& index, const SampleIndex* eval);

/// Why the data cannot be used, a complaint each, beginning with its key where it is about one; empty: they can.
std::vector<std::string> data_refusals(const JobSpec& spec, const DataCounts& counts);

/// "2 of 16 records cannot be used", and what becomes of them: left out by on_bad_record: skip, or that skip goes on
/// without them, where any would be left.
std::string unusable_records(int64_t bad, int64_t records, OnBadRecord policy);

}  // namespace troupe
