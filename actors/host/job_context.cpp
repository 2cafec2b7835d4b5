#include "actors/host/job_context.h"

#include <algorithm>
#include <cmath>

#include "base/config/job_spec_parser.h"
#include "base/data/source_weights.h"
#include "base/program/gradient_buckets.h"
#include "base/program/unit_memory.h"

namespace troupe {
namespace {

int group_with(const JobSpec& spec, const std::string& component) {
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    const auto& held = spec.groups[g].components;
    if (std::find(held.begin(), held.end(), component) != held.end()) return static_cast<int>(g);
  }
  return -1;
}

Status open_data(JobContext& job) {
  const HostAssignment& a = job.assignment;
  if (job.spec.data.synthetic) {
    job.data = open_synthetic_dataset(*job.spec.data.synthetic, job.config, job.spec.training.seed);
  } else {
    TROUPE_ASSIGN(SampleIndex index, SampleIndex::read(a.index_path));
    TROUPE_ASSIGN(job.data, open_dataset(job.spec.data, job.spec.data.sources, job.spec.model.path, job.config,
                                         std::move(index)));
  }
  if (!a.eval_index_path.empty()) {
    TROUPE_ASSIGN(SampleIndex index, SampleIndex::read(a.eval_index_path));
    TROUPE_ASSIGN(job.eval_data, open_dataset(job.spec.data, job.spec.eval.sources, job.spec.model.path, job.config,
                                              std::move(index)));
  }
  const auto& samples = job.data->index().samples;
  for (size_t s = 0; s < samples.size(); ++s) {
    const bool held_out = job.spec.eval.split > 0 && in_eval_split(samples[s], job.spec.eval.split);
    (held_out ? job.eval_samples : job.training_samples).push_back(static_cast<int64_t>(s));
  }
  job.epoch_samples = epoch_size(job.data->index(), job.training_samples, source_weights(job.spec.data.sources));
  if (job.eval_data) {
    job.eval_samples.resize(job.eval_data->index().samples.size());
    for (size_t s = 0; s < job.eval_samples.size(); ++s) job.eval_samples[s] = static_cast<int64_t>(s);
  }
  if (job.spec.eval.max_samples > 0 && static_cast<int64_t>(job.eval_samples.size()) > job.spec.eval.max_samples)
    job.eval_samples.resize(static_cast<size_t>(job.spec.eval.max_samples));
  if (job.epoch_samples == 0 && trains(a.mode)) return invalid_argument("data.sources: no sample is left to train on");
  return {};
}

}  // namespace

bool JobContext::trained(int g) const {
  return std::any_of(group(g).components.begin(), group(g).components.end(),
                     [&](const std::string& c) { return spec.components.at(c).train; });
}

Span JobContext::span(SpanKind kind, const char* name, int64_t step, int group, int rank, int unit) const {
  Span span;
  span.kind = kind;
  span.name = name;
  span.step = step;
  span.group = group;
  span.rank = rank;
  span.unit = unit;
  return span;
}

Result<std::unique_ptr<JobContext>> make_job_context(HostControl& control) {
  auto job = std::make_unique<JobContext>();
  job->control = &control;
  job->assignment = control.assignment();
  TROUPE_ASSIGN(job->spec, parse_job_spec(job->assignment.job_yaml, job->assignment.run_folder + "/job.yaml"));
  TROUPE_ASSIGN(job->config, read_model_config(job->spec.model.path));
  job->encoder = group_with(job->spec, "vision");
  job->decoder = group_with(job->spec, "text");
  if (job->encoder < 0 || job->decoder < 0 || job->encoder == job->decoder)
    return invalid_argument("groups: vision and text must be trained by two different groups");
  control.report_phase("opening the data");
  TROUPE_RETURN_IF_ERROR(open_data(*job));
  job->training = is_noop(job->assignment.mode)
                      ? record_dispatch_loop(job->spec)
                      : record_training_loop(job->spec, gradient_bucket_counts(job->spec, job->config),
                                             encoder_row_bytes(job->spec, job->config.vision));
  job->evaluation = record_evaluation_loop(job->spec);
  job->steps = training_steps(job->spec, job->epoch_samples);
  return job;
}

}  // namespace troupe
