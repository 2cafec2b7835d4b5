#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/run/planned_job.h"

/// One function a verb; each returns the process's exit code. Called before any thread exists.
namespace troupe::cli {

struct RunOptions {
  std::string job_file, cluster_file, run_dir, resume, actor;
  std::vector<std::string> overrides;
  bool json = false;
  // run
  std::string loop;  // the program that drives the job; empty: the recorded loop
  std::vector<std::string> loop_arguments;
  // eval
  bool evaluate = false, shuffle_images = false;
  std::string model;
  int show = 0;      // check too
  std::string html;  // check
};
int run_command(const RunOptions& options);
int plan_command(const RunOptions& options);
/// Carried out by troupe-actor: `check`.
int check_command(const RunOptions& options);

struct DriverOptionsGiven {
  std::string cluster_file, journal, actor;
};
int driver_command(const DriverOptionsGiven& options);

struct WorkerOptionsGiven {
  std::string driver, node, secrets, cluster_file, actor;
};
int worker_command(const WorkerOptionsGiven& options);

/// How a client finds its driver.
struct ClientOptions {
  std::string driver, cluster_file, secrets;
  std::string target;  // job id or run folder
  bool json = false;
};
int submit_command(const ClientOptions& client, const RunOptions& run, bool wait);
int status_command(const ClientOptions& client);
/// Merges the traces of a run folder's newest window into `out` (empty: beside them).
int trace_command(const std::string& run, const std::string& out, bool as_json);
int logs_command(const ClientOptions& client, const std::string& group, int rank, bool follow);
int cancel_command(const ClientOptions& client);

/// A configuration of another project, and where its spec goes.
struct ConvertOptionsGiven {
  std::string file, output;              // output "": standard output
  std::string tool, model, working_dir;  // "": as the file says; here
  int64_t devices = 0, global_batch = 0;
  bool full = false, force = false, json = false;
};
int convert_command(const ConvertOptionsGiven& options);

/// Asks the actor program whether it can use the devices of these slots on this machine; InvalidArgument names the
/// first slot whose device it cannot, and why. Costs nothing when all are "cpu", else the start of a process.
Status check_devices(const std::string& actor, const std::vector<driver::PlannedSlot>& slots);

/// `arguments`: the bench's name and what stands behind it. Without a name, or with one that no bench has, all are
/// listed and the request is refused.
int bench_command(const std::string& actor, const std::vector<std::string>& arguments);
/// The benches, a line each, without a newline behind the last.
std::string benches_text();

/// Becomes `troupe-actor` with the same arguments; returns only when that fails.
int actor_command(const std::string& actor, const std::vector<std::string>& arguments);

}  // namespace troupe::cli
