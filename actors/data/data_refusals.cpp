#include "actors/data/data_refusals.h"

#include "base/config/job_spec_parser.h"
#include "base/config/scalars.h"
#include "base/data/batch_plan.h"

namespace troupe {

std::string unusable_records(int64_t bad, int64_t records, OnBadRecord policy) {
  const std::string said = std::to_string(bad) + " of " + std::to_string(records) + " records cannot be used";
  if (policy == OnBadRecord::kSkip) return said + " and are left out";
  return bad < records ? said + " (data.on_bad_record: skip goes on without them)" : said;
}

Status check_enough_samples(const JobSpec& spec, int64_t samples, int64_t held_out) {
  const int64_t batch = spec.training.global_batch;
  if (samples < batch)
    return invalid_argument(
        "key 'training.global_batch': value " + std::to_string(batch) + ", but the data have " +
        std::to_string(samples) + " samples to train on" +
        (held_out > 0 ? " (" + std::to_string(held_out) + " more are held out by eval.split)" : "") +
        "; valid: " + (samples > 0 ? "at most " + std::to_string(samples) + ", or more samples" : "data with samples"));
  const int64_t steps = training_steps(spec, samples);
  if (steps > 0) return check_steps(spec, steps);
  return invalid_argument("key 'training.epochs': value " + number_text(spec.training.epochs.value_or(0)) + " of " +
                          std::to_string(samples) + " samples is no sample, so no step; valid: at least " +
                          number_text(1.0 / static_cast<double>(samples)));
}

}  // namespace troupe
