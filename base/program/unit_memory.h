#pragma once

#include <cstdint>

#include "base/config/job_spec.h"
#include "base/model/model_config.h"

/// What units keep between forward and backward, from shapes alone: schedules are cut by it, so it is no rank's own
/// measurement.
namespace troupe {

/// Bytes that a rank of the encoder keeps for each merged row that its lane encodes, on average over the lane's sp
/// ranks: the inputs of products, norms, activations and attention in the compute dtype. What a rank holds more for a
/// moment (the largest intermediate result) is not in it.
int64_t encoder_row_bytes(const JobSpec& spec, const VisionConfig& config);

}  // namespace troupe
