#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/config/manifest.h"
#include "base/result.h"
#include "driver/plan/job_plan.h"
#include "driver/run/planned_job.h"
#include "driver/supervision/worker_leases.h"

/// From files to a job that the driver can run. Every refusal comes from here, before anything is started or written.
namespace troupe::cli {

struct PlannedRun {
  JobSpec spec;
  JobPlan plan;
  std::vector<int> buckets;  // of gradients, by group
  driver::PlannedJob job;
};

/// Reads the model's shapes and plans `spec` on the manifest (null: this machine). `training` false: for an evaluation.
Result<PlannedRun> plan_run(JobSpec spec, const Manifest* manifest, bool training = true);

/// The workers that the driver waits for: the manifest's nodes, or this machine's one.
std::vector<driver::ExpectedWorker> expected_workers(const Manifest* manifest);

/// The name of this machine's node when there is no manifest.
inline constexpr char kLocalNode[] = "local";

/// `path`, absolute and without `.`, `..` and a slash at its end: one spelling for one folder.
std::string absolute_folder(const std::string& path);

/// Where a job's files go: what was asked for, else runs/NAME-ID; with --resume auto and no folder, runs/NAME.
/// Absolute.
Result<std::string> choose_run_folder(const std::string& name, const std::string& run_dir, const std::string& resume);

/// Whether `spec` can go on from the newest complete checkpoint of `resume` ("auto": of `run_folder`): same layout,
/// same data position. Looked at before the run folder is touched, so that a refusal leaves the earlier run's files as
/// they are. A named folder without a complete checkpoint is refused; with "auto" there need be none, but where there
/// are some, one must be complete (DataLoss).
Status check_resume(const JobSpec& spec, const std::string& run_folder, const std::string& resume);

/// training.steps of the run that `resume` goes on from ("auto": the one in `run_folder`); 0 when there is none, or it
/// counted epochs.
int64_t steps_of_run(const std::string& run_folder, const std::string& resume);

/// Whether `free_bytes` of disk hold the checkpoints that the run keeps at a time, and its export with the parts that
/// it is made of; refused with numbers.
Status check_disk(const JobPlan& plan, const JobSpec& spec, const std::string& run_folder, uint64_t free_bytes);
/// What the files in a folder and its folders hold; 0 when it is not there.
uint64_t bytes_below(const std::string& folder);

/// troupe-actor beside this program, or what was asked for. Absolute.
std::string actor_program(const std::string& asked);
/// This program's own path.
std::string own_program();

}  // namespace troupe::cli
