#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/model/model_config.h"
#include "base/model/parameter.h"

/// How the trained parameters of a group are cut into buckets, whose gradients are reduced and whose weights are
/// gathered as one. Pure: every rank and the driver cut alike, from declarations and the spec, never from what a run
/// did.
namespace troupe {

/// Parameters [first, last) of the group, in memory order, all of one component.
struct GradientBucket {
  int first = 0, last = 0;
  bool operator==(const GradientBucket&) const = default;
};

/// Buckets in the order in which a backward pass finishes them: the last parameters first. A bucket is closed before it
/// would hold more than `most_elements` (of one tp rank; 0: no bound), so one large parameter is one bucket; none goes
/// over the border of a component. `parameters`: all of the group in memory order. The same on every rank, also over
/// tp.
std::vector<GradientBucket> gradient_buckets(const std::vector<ParameterDecl>& parameters,
                                             const std::vector<std::string>& frozen, int tp, int64_t most_elements);

/// `most_elements` of a group: training.bucket_bytes in gradients; no bound for a group of one rank, which reduces
/// nothing.
int64_t most_bucket_elements(const JobSpec& spec, const GroupSpec& group);

/// How many buckets each group of a job has.
std::vector<int> gradient_bucket_counts(const JobSpec& spec, const ModelConfig& config);

}  // namespace troupe
