#include "actors/data/data_refusals.h"

#include "base/config/job_spec_parser.h"
#include "base/config/scalars.h"
#include "base/data/batch_plan.h"
#include "base/data/source_weights.h"

namespace troupe {
namespace {

std::string number(int64_t n) { return std::to_string(n); }

/// Whether there is anything to learn, and every sample fits the sequence that it would be packed into.
void check_samples(const JobSpec& spec, const DataCounts& c, std::vector<std::string>& out) {
  if (c.samples > 0 && c.supervised == 0)
    out.push_back("none of the " + number(c.samples) +
                  " samples has a supervised token, so nothing would be learned; valid: records with answers");
  if (spec.data.pack_tokens > 0 && c.longest > spec.data.pack_tokens)
    out.push_back("key 'data.pack_tokens': value " + number(spec.data.pack_tokens) + ", but sample '" + c.longest_id +
                  "' has " + number(c.longest) + " tokens; valid: at least " + number(c.longest) +
                  ", or a data.max_sample_tokens that leaves it out");
}

/// A source of which no sample ever comes is a mistake in its path, in what is taken of it, or in its weight.
void check_sources(const JobSpec& spec, const DataCounts& c, std::vector<std::string>& out) {
  const bool refused = c.bad > 0 && spec.data.on_bad_record == OnBadRecord::kFail;  // for what may be the reason
  for (size_t i = 0; i < c.sources.size(); ++i) {
    const auto& [samples, in_epoch, all] = c.sources[i];
    if (all == 0 && c.samples > 0 && !refused)
      out.push_back("key '" + spec.data.sources[i].key + ".path': '" + spec.data.sources[i].path +
                    "' gives no sample; valid: a file with records that can be used, of which 'take' and "
                    "data.max_sample_tokens leave some");
    if (samples == 0 || in_epoch > 0) continue;
    out.push_back("key '" + spec.data.sources[i].key + ".weight': value " + number_text(spec.data.sources[i].weight) +
                  " of " + number(samples) + " samples is no sample in a data epoch; valid: at least " +
                  number_text(1.0 / static_cast<double>(samples)));
  }
}

/// Whether the samples fill a batch, come to a step, and to the steps that are to be dumped or traced.
void check_amount(const JobSpec& spec, const DataCounts& c, std::vector<std::string>& out) {
  const int64_t batch = spec.training.global_batch, samples = c.epoch_samples;
  if (samples < batch) {
    const std::string held = c.held_out > 0 ? " (" + number(c.held_out) + " more are held out by eval.split)" : "";
    out.push_back("key 'training.global_batch': value " + number(batch) + ", but the data have " + number(samples) +
                  " samples to train on" + held + "; valid: " +
                  (samples > 0 ? "at most " + number(samples) + ", or more samples" : "data with samples"));
    return;
  }
  const int64_t steps = training_steps(spec, samples);
  if (steps == 0) {
    out.push_back("key 'training.epochs': value " + number_text(spec.training.epochs.value_or(0)) + " of " +
                  number(samples) + " samples is no sample, so no step; valid: at least " +
                  number_text(1.0 / static_cast<double>(samples)));
  } else if (const Status s = check_steps(spec, steps); !s.ok()) {
    out.push_back(s.error().message);
  }
}

/// What evaluation would look at: nothing would read as a loss of 0.
void check_evaluation(const JobSpec& spec, const DataCounts& c, std::vector<std::string>& out) {
  const bool sources = !spec.eval.sources.empty();
  if (c.eval_bad > 0 && sources && spec.data.on_bad_record == OnBadRecord::kFail)
    out.push_back("key 'eval.sources': " + unusable_records(c.eval_bad, c.eval_records, spec.data.on_bad_record));
  if (!c.eval_known || c.eval_supervised > 0) return;
  const std::string tokens = c.eval_samples > 0 ? " with no supervised token" : "";
  if (sources)
    out.push_back("key 'eval.sources': " + number(c.eval_samples) + " samples" + tokens +
                  " are left to evaluate; valid: records with answers");
  else
    out.push_back("key 'eval.split': value " + number_text(spec.eval.split) + " holds out " + number(c.eval_samples) +
                  " of " + number(c.samples) + " samples" + tokens + "; valid: a larger fraction, or eval.sources");
}

}  // namespace

DataCounts count_data(const JobSpec& spec, const SampleIndex& index, const SampleIndex* eval) {
  DataCounts c;
  c.records = index.total_records;
  c.bad = static_cast<int64_t>(index.bad.size());
  c.samples = static_cast<int64_t>(index.samples.size());
  c.sources.resize(spec.data.sources.size());
  int64_t held_supervised = 0;
  for (const SampleView sample : index.samples) {
    c.supervised += sample.supervised;
    if (sample.tokens > c.longest) {
      c.longest = sample.tokens;
      c.longest_id = sample.id;
    }
    const bool of_source = static_cast<size_t>(sample.source) < c.sources.size();  // synthetic data have none
    if (of_source) ++c.sources[static_cast<size_t>(sample.source)].all;
    if (in_eval_split(sample, spec.eval.split)) {
      ++c.held_out;
      held_supervised += sample.supervised;
    } else if (of_source) {
      ++c.sources[static_cast<size_t>(sample.source)].samples;
    } else {
      ++c.epoch_samples;
    }
  }
  for (size_t i = 0; i < c.sources.size(); ++i) {
    auto& [samples, in_epoch, all] = c.sources[i];
    in_epoch = epoch_share(spec.data.sources[i].weight, samples).of(samples);
    c.epoch_samples += in_epoch;
  }
  if (eval != nullptr) {
    c.eval_records = eval->total_records;
    c.eval_bad = static_cast<int64_t>(eval->bad.size());
    c.eval_samples = static_cast<int64_t>(eval->samples.size());
    for (const SampleView sample : eval->samples) c.eval_supervised += sample.supervised;
  } else {
    c.eval_samples = c.held_out;
    c.eval_supervised = held_supervised;
  }
  c.eval_known = eval != nullptr || (spec.eval.sources.empty() && spec.eval.split > 0);
  return c;
}

std::vector<std::string> data_refusals(const JobSpec& spec, const DataCounts& counts) {
  std::vector<std::string> out;
  if (counts.bad > 0 && spec.data.on_bad_record == OnBadRecord::kFail)
    out.push_back(unusable_records(counts.bad, counts.records, spec.data.on_bad_record));
  check_samples(spec, counts, out);
  check_sources(spec, counts, out);
  check_amount(spec, counts, out);
  check_evaluation(spec, counts, out);
  return out;
}

std::string unusable_records(int64_t bad, int64_t records, OnBadRecord policy) {
  const std::string said = number(bad) + " of " + number(records) + " records cannot be used";
  if (policy == OnBadRecord::kSkip) return said + " and are left out";
  return bad < records ? said + " (data.on_bad_record: skip goes on without them)" : said;
}

}  // namespace troupe
