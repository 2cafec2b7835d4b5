#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/bench/batch_dataset.h"
#include "actors/bench/local_control.h"
#include "actors/host/executor.h"
#include "base/program/gradient_buckets.h"
#include "base/program/unit_memory.h"

/// A job small enough for unit tests: a random model of a few thousand parameters and a random batch, without files.
namespace troupe::testing {

inline ModelConfig small_config() {
  ModelConfig c;
  c.vision.depth = 2;
  c.vision.hidden = 24;
  c.vision.intermediate = 32;
  c.vision.heads = 6;
  c.vision.out_hidden = 24;
  c.vision.patch_size = 2;
  c.vision.window_size = 8;  // 4 x 4 patches
  c.vision.full_attention_blocks = {1};
  c.text.layers = 2;
  c.text.hidden = 24;
  c.text.intermediate = 40;
  c.text.heads = 6;
  c.text.kv_heads = 2;
  c.text.head_dim = 4;
  c.text.vocabulary = 61;
  c.text.mrope_section = {1, 1, 0};
  c.image_token = 55;
  c.video_token = 56;
  c.vision_start_token = 57;
  c.vision_end_token = 58;
  return c;
}

inline JobSpec small_spec(int64_t samples) {
  JobSpec spec;
  spec.model.init = ModelInit::kRandom;
  spec.model.dtype = DType::kFp32;
  spec.components = {{"vision", {}}, {"merger", {}}, {"text", {}}};
  GroupSpec vision, text;
  vision.name = "vision";
  vision.components = {"vision", "merger"};
  text.name = "text";
  text.components = {"text"};
  spec.groups = {vision, text};
  spec.data.shuffle = false;
  spec.training.steps = 20;
  spec.training.global_batch = samples;
  spec.training.optimizer.lr = 1e-2;
  spec.training.schedule.type = ScheduleKind::kConstant;
  return spec;
}

/// `group_slots` as in the assignment; `self` is this host's slot.
inline std::unique_ptr<JobContext> small_job(HostControl& control, JobSpec spec, std::unique_ptr<Dataset> data) {
  auto job = std::make_unique<JobContext>();
  job->control = &control;
  job->assignment = control.assignment();
  job->config = small_config();
  job->spec = std::move(spec);
  job->data = std::move(data);
  for (size_t s = 0; s < job->data->index().samples.size(); ++s)
    job->training_samples.push_back(static_cast<int64_t>(s));
  job->eval_samples = job->training_samples;
  job->epoch_samples = static_cast<int64_t>(job->training_samples.size());
  job->encoder = 0;
  job->decoder = 1;
  job->training = record_training_loop(job->spec, gradient_bucket_counts(job->spec, job->config),
                                       encoder_row_bytes(job->spec, job->config.vision));
  job->evaluation = record_evaluation_loop(job->spec);
  job->steps = *job->spec.training.steps;
  return job;
}

inline HostAssignment small_assignment(int self, std::vector<std::vector<int>> group_slots, int slots) {
  HostAssignment a;
  a.job_id = "test";
  a.mode = JobMode::kTrain;
  a.generation = Generation(1);
  a.self = SlotId(self);
  for (int s = 0; s < slots; ++s) a.slots.push_back({"local", s, "cpu", 1, "127.0.0.1"});
  a.group_slots = std::move(group_slots);
  return a;
}

}  // namespace troupe::testing
