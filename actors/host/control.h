#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/job_mode.h"
#include "base/rendezvous/kv_store.h"
#include "base/result.h"
#include "base/trace/host_trace.h"

/// What an actor host says to its driver and hears from it. Implemented over gRPC in actors/rpc; by fakes in tests.
namespace troupe {

struct SlotInfo {
  std::string node;          // name in the manifest
  int index = 0;             // on the node
  std::string device;        // "cpu" or "cuda:3"
  int threads = 1;           // intra-op threads (CPU slots)
  std::string data_address;  // address that the data plane binds to
};

/// Everything that a host derives its work from. Sent once a generation.
struct HostAssignment {
  std::string job_id;
  JobMode mode = JobMode::kTrain;
  std::string run_folder;
  std::string job_yaml;  // the spec as resolved
  Generation generation;
  Term term;
  SlotId self;
  std::vector<SlotInfo> slots;
  std::vector<std::vector<int>> group_slots;  // [group in spec order][rank] -> slot
  std::string index_path;                     // of data.sources ("" with data.synthetic)
  std::string eval_index_path;                // of eval.sources, or "" when there are none
  std::string resume_from;                    // checkpoint folder, or ""
  std::string command_json;                   // extra arguments of eval and other modes, "{}" when none
};

/// Grants are monotone and never revoked: the host may run every step up to `run_through`; `stop_after` (>= 0) is the
/// last step of all: after it the host finishes in order. `save_at` (>= 0): write a checkpoint after that step.
/// `left_out`: granted step -> dataset samples (ascending) that some host cannot read; every host leaves them out of
/// that step's batch.
struct Grant {
  Generation generation;
  int64_t run_through = 0;
  int64_t stop_after = -1;
  int64_t save_at = -1;
  std::map<int64_t, std::vector<int64_t>> left_out;
};

/// Thread-safe. Reports are queued and sent by the control client's own thread; they never block on the driver.
/// Prepared and done steps are gathered for 50 ms while the grants last longer than 100 ms at the present pace, for 1
/// ms otherwise, and sent before a host waits for a grant; what is gathered is bounded by the grants (and by 1,024
/// steps a message). All other reports leave at once, behind what was gathered.
class HostControl {
 public:
  virtual ~HostControl() = default;
  virtual const HostAssignment& assignment() const = 0;
  virtual KvStore& store() = 0;
  /// Shown to the person and used for blame: "loading weights", "meeting vision ranks", ...
  virtual void report_phase(const std::string& phase) = 0;
  /// Everything is loaded and connected; the first grant follows when all hosts are ready.
  virtual void report_ready() = 0;
  /// Batches up to `step` are decoded, all but `bad_samples` of this step (dataset sample numbers, ascending).
  virtual void report_prepared(int64_t step, const std::vector<int64_t>& bad_samples) = 0;
  /// Waits for a grant that covers `step` or says to stop before it. Cancelled when the job ends, Unavailable when the
  /// driver is lost.
  virtual Result<Grant> wait_grant(int64_t step, std::chrono::milliseconds timeout) = 0;
  /// One line of metrics.jsonl (a JSON object), sent by one host a step (the one with rank 0 of the last group), plus
  /// `local`: {"peak_memory_mib": ..., ...} sent by every host.
  virtual void report_step(int64_t step, const std::string& metrics_json, const std::string& local_json) = 0;
  /// One line of evaluation results for metrics.jsonl.
  virtual void report_evaluation(int64_t step, const std::string& json) = 0;
  /// A line for events.jsonl: kind and JSON details.
  virtual void report_event(const std::string& kind, const std::string& json) = 0;
  /// A loop of one's own has said that it is done: what is left is this host's business, and may take its time.
  virtual void report_finishing() = 0;
  /// Ends the job with this cause. The process exits afterwards.
  virtual void report_error(const Error& error) = 0;
  /// All work done; `result_json` goes to result.json. Blocks until it is delivered.
  virtual Status report_finished(const std::string& result_json) = 0;
  /// Publishes what the executor is doing to a page that the worker reads (cheap; called at every instruction).
  virtual void publish_progress(int64_t step, const char* instruction, int group, int rank) = 0;
  /// How this host's steady clock lies to the driver's: the quickest of a few round trips over the control stream.
  /// Blocks for them, 2 s at most; an Unavailable or DeadlineExceeded says that the driver did not answer.
  virtual Result<ClockOffset> measure_clock() = 0;
  /// Where this host may listen for calls: "unix:PATH" beside the driver's own socket; empty: the driver is reached
  /// over TCP, where hosts have no certificate to show.
  virtual std::string call_address() const { return {}; }
  /// True once the driver or worker asked this host to end at once.
  virtual bool stop_requested() const = 0;
};

/// Connects to driver and worker with what the worker put into the environment and argument list, says hello, receives
/// the assignment.
Result<std::unique_ptr<HostControl>> connect_host_control(int argc, char** argv);

}  // namespace troupe
