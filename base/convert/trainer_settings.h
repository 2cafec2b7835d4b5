#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/convert/conversion_scope.h"

/// What both projects take over from transformers' trainer: batch, optimizer, schedule, length, saving, evaluation.
/// Where their defaults differ the caller gives them.
namespace troupe::convert {

/// The data-parallel ranks that a batch is multiplied by, and which keys or flags say so.
struct Ranks {
  int64_t count = 1;
  std::vector<std::string> from;
  std::string why;
};

/// From --devices, else NPROC_PER_NODE x NNODES, else (when `visible`) the number of CUDA_VISIBLE_DEVICES, else one.
Ranks ranks_of(const ConversionScope& scope, bool visible);

/// Batch sizes, and groups with that many replicas. `accumulation`: the default; 0: as many as make 16 samples.
void convert_batch(const ConversionScope& scope, const Ranks& ranks, int64_t default_batch, int64_t accumulation);

struct OptimizerDefaults {
  double lr, weight_decay, beta2;
};
void convert_optimizer(const ConversionScope& scope, const OptimizerDefaults& defaults);

/// `type`: the default of lr_scheduler_type; `lr` is what min_lr is a part of.
void convert_schedule(const ConversionScope& scope, const std::string& type, double lr);

/// Steps or epochs, seed, saving, logging, device.
void convert_course(const ConversionScope& scope);

/// How often held-out samples are evaluated: `strategy` and `steps` are the defaults. Without `held_out` nothing is
/// written.
void convert_evaluation(const ConversionScope& scope, bool held_out, const std::string& strategy, int64_t steps);
/// eval_strategy, or its older name; `fallback` when neither is given.
std::string evaluation_strategy(const ConversionScope& scope, const std::string& fallback);

}  // namespace troupe::convert
