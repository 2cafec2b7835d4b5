#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/host/actor.h"

/// Saving, resuming and exporting from a running job: every host calls the same function at the same step.
namespace troupe {

/// Where training stands, beside weights and optimizer state.
struct TrainingPosition {
  int64_t step = 0;           // the last one done
  int64_t skipped_steps = 0;  // of these, without an update
};

/// Every host says what its ranks will write, and all take the leader's word for what the disk has: ResourceExhausted,
/// with both numbers, on every host or on none, before anything is written. `step` names the save.
Status agree_on_space(const JobContext& job, int64_t step, int64_t own_bytes, uint64_t free_bytes);
/// Writes RUN/checkpoints/step-N: complete or not there. ResourceExhausted when it would not fit.
Status save_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors,
                       const TrainingPosition& position);
/// Restores what the assignment's resume_from holds. The layout must be the one that saved it.
Result<TrainingPosition> restore_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors);
/// Writes the model as a Hugging Face folder.
Status export_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, const std::string& folder);

}  // namespace troupe
