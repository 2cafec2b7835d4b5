#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/config/manifest.h"
#include "base/model/model_config.h"
#include "base/placement/placement.h"
#include "base/result.h"

/// From a spec, a manifest and a model's shapes to a plan: who sits where, with which parameters and how much memory.
/// Pure but for the look at this machine when there is no manifest.
namespace troupe {

/// Bytes that a rank holds for the whole run; activations come on top and depend on the batch.
struct RankMemory {
  int64_t parameters = 0;       // local elements, padding included
  int64_t weights_bytes = 0;    // compute dtype
  int64_t gradients_bytes = 0;  // fp32 (bf16 in bf16-pure), trained parameters only; with zero 1 the reduced shard too
  int64_t optimizer_bytes = 0;  // both moments and the master weights, sharded over dp x sp with zero 1
  int64_t total_bytes() const { return weights_bytes + gradients_bytes + optimizer_bytes; }
};

struct GroupPlan {
  std::string name;
  std::vector<std::string> components;
  Mesh mesh;
  int zero = 1;
  int64_t parameters = 0;  // of the components, global
  int64_t trained_parameters = 0;
  std::vector<RankMemory> ranks;
};

struct JobPlan {
  std::vector<Slot> slots;
  std::vector<std::vector<int>> group_slots;  // [group in spec order][rank] -> slot
  std::vector<GroupPlan> groups;              // in spec order
  std::vector<int64_t> slot_bytes;            // of all ranks on a slot
  std::vector<std::string> warnings;
  int64_t parameters = 0;  // of the model; a tied head counts once
};

/// Refuses (InvalidArgument, with numbers) what check_heads and place_groups refuse, and slots whose ranks need more
/// memory than the manifest says a device has, or, all CPU slots together, than this machine has available.
Result<JobPlan> plan_job(const JobSpec& spec, const Manifest* manifest, const ModelConfig& config,
                         const Machine& machine = this_machine());

/// Tables for a person: the job, its groups, its slots. Ends with a newline.
std::string render_plan(const JobPlan& plan, const JobSpec& spec);
/// The same as JSON (`troupe plan --json`).
nlohmann::json plan_json(const JobPlan& plan, const JobSpec& spec);

}  // namespace troupe
