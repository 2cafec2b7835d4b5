#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/data/dataset.h"
#include "actors/host/control.h"
#include "base/config/job_spec.h"
#include "base/data/batch_plan.h"
#include "base/model/model_config.h"
#include "base/program/program.h"
#include "base/trace/trace_log.h"
#include "transport/channel/delayed_channel.h"

/// What every part of an actor host needs to know about its job; made once from the assignment, constant afterwards.
namespace troupe {

struct JobContext {
  HostControl* control = nullptr;
  HostAssignment assignment;
  at::Device device = at::kCPU;  // of this host's slot
  JobSpec spec;
  ModelConfig config;
  std::unique_ptr<Dataset> data;          // data.sources or data.synthetic
  std::unique_ptr<Dataset> eval_data;     // eval.sources; null: the held-out split of `data`
  std::vector<int64_t> training_samples;  // usable for training
  int64_t epoch_samples = 0;              // of a data epoch: each of these as often as its source's weight says
  std::vector<int64_t> eval_samples;      // of eval_data, or of data when eval_data is null
  int encoder = -1, decoder = -1;         // group numbers
  Program training, evaluation;
  int64_t steps = 0;                                               // of the whole training
  std::unique_ptr<TraceLog> trace = std::make_unique<TraceLog>();  // off unless a window of steps is traced

  const GroupSpec& group(int g) const { return spec.groups[static_cast<size_t>(g)]; }
  /// The slot of a rank of a group.
  SlotId slot_of(int group, int rank) const {
    return SlotId(assignment.group_slots[static_cast<size_t>(group)][static_cast<size_t>(rank)]);
  }
  const Dataset& eval_dataset() const { return eval_data ? *eval_data : *data; }
  MessageDelays message_delays;  // tests only: boundary messages leave late

  bool trained(int group) const;
  /// A span of this host to record: group and rank of an actor, or -1 for both.
  Span span(SpanKind kind, const char* name, int64_t step, int group, int rank, int unit = -1) const;
};

/// Opens data and configuration as the assignment says.
Result<std::unique_ptr<JobContext>> make_job_context(HostControl& control);

}  // namespace troupe
