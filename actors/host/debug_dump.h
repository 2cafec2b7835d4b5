#pragma once

#include <memory>
#include <vector>

#include "actors/host/actor.h"

/// Whole tensors of chosen steps, in fp32 under Hugging Face names, for comparing with other programs (debug.dump).
namespace troupe {

/// Every host calls this between combine and update of a step listed in debug.dump.steps.
Status dump_step(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, const StepPlan& plan);

}  // namespace troupe
