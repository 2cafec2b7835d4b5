#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/job_mode.h"

/// A job that was accepted: what the driver needs to run it, and nothing of how it was planned.
namespace troupe::driver {

struct PlannedSlot {
  std::string node;
  int index = 0;
  std::string device;  // "cpu" or "cuda:3"
  int threads = 1;
  std::string data_address;
};

struct PlannedJob {
  std::string name;
  JobMode mode = JobMode::kTrain;
  std::string job_yaml;  // as resolved
  std::string command_json = "{}";
  std::string run_folder;  // absolute
  std::string resume;      // "", "auto", or the run folder to go on from
  std::vector<PlannedSlot> slots;
  std::vector<std::string> group_names;
  std::vector<std::vector<int>> group_slots;  // [group][rank] -> position in slots
  bool needs_index = false;
  bool needs_eval_index = false;
  int64_t total_steps = 0;   // 0: known to the hosts only
  int64_t steps_before = 0;  // of a resumed run: total_steps of the run that it goes on from; 0: not known
  int64_t log_every = 1;     // steps between two progress lines (metrics.jsonl has every step)
  std::chrono::milliseconds save_grace{300000};
  std::string plan_text;              // for people
  std::vector<std::string> warnings;  // of the plan; plan_text has them too
};

}  // namespace troupe::driver
