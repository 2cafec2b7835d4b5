#pragma once

#include <memory>
#include <vector>

#include "actors/host/actor.h"

/// Whole tensors of chosen steps, in fp32 under Hugging Face names, for comparing with other programs (debug.dump).
namespace troupe {

/// What a dump calls the samples of a step, by position in plan.samples: their ids; where several have one id (a record
/// that comes again, records with the same id) the second is `id#2`, the third `id#3`, unless that is the id of
/// another.
std::vector<std::string> dump_names(const StepPlan& plan, const SampleIndex& index);

/// Every host calls this between combine and update of a step listed in debug.dump.steps.
Status dump_step(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, const StepPlan& plan);

}  // namespace troupe
