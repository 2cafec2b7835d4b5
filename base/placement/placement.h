#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/config/manifest.h"
#include "base/result.h"

/// Which rank of which group sits on which slot. Pure arithmetic on the spec and a list of slots.
namespace troupe {

/// One device of one node, as the job uses it.
struct Slot {
  std::string node;            // name in the manifest; "local" without one
  int index = 0;               // on the node: the CUDA device's number, or the position of a CPU slot
  std::string device;          // "cpu" or "cuda:3"
  int threads = 1;             // intra-op threads (CPU slots)
  std::string data_address;    // address that the data plane binds to
  int64_t memory_bytes = 0;    // of the device; 0: not known
  bool shares_memory = false;  // memory_bytes is for all of the node's slots together
  /// "a:3"
  std::string name() const { return node + ":" + std::to_string(index); }
};

/// The slots that a job uses, and each group's ranks on them.
struct Placement {
  std::vector<Slot> slots;
  std::vector<std::vector<int>> group_slots;  // [group in spec order][rank] -> position in `slots`
};

/// What this machine offers when there is no manifest.
struct Machine {
  int cuda_devices = 0;
  int cores = 1;
  int64_t memory_bytes = 0;  // for all CPU slots together; 0: not known
};
/// Counts /dev/nvidiaN and the cores that this process may use; the memory is what is free or can be made free, within
/// the limit of this process's control group. How much memory a GPU has only a manifest says.
Machine this_machine();
/// MemAvailable and free swap of /proc/meminfo's text, at most what a control group's limit file says ("max" and
/// nothing: no limit). 0 when the text does not say.
int64_t available_memory(const std::string& meminfo, const std::string& limit);

/// All slots that the job may choose from, in the manifest's order (null: this machine, whose CPU slots are as many as
/// the spec asks for). `device: auto` takes GPUs when there are any. Threads that nobody fixed are shared out evenly,
/// at least one a slot.
Result<std::vector<Slot>> available_slots(const JobSpec& spec, const Manifest* manifest, const Machine& machine);

/// Places every group. Refused with numbers: more slots than exist, unknown nodes or slots, a slot twice in one group,
/// lists whose length is not the mesh's. Colocated groups share the first slots, disjoint ones (and slot counts) take
/// them one after the other; explicit lists may overlap between groups in any way.
Result<Placement> place_groups(const JobSpec& spec, const std::vector<Slot>& available);

}  // namespace troupe
