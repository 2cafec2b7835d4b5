#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/data/index_progress.h"
#include "base/loop/owner_loop.h"
#include "driver/journal/journal.h"
#include "driver/run/metrics_merger.h"
#include "driver/run/peers.h"
#include "driver/run/planned_job.h"
#include "driver/run/run_folder.h"
#include "driver/supervision/job_life.h"
#include "driver/supervision/rendezvous_store.h"

/// Carries out what the state machines decide for one job: spawns, assigns, grants, writes the run folder, tells
/// watchers.
namespace troupe::driver {

/// What the runner needs of its driver. All calls are made on the owner loop.
struct JobSurroundings {
  OwnerLoop* loop = nullptr;
  Journal* journal = nullptr;
  std::function<WorkerPeer*(const std::string& node)> worker;                 // nullptr: not present
  std::function<void(const std::string& incarnation, int slot)> own_process;  // routes the worker's reports to this job
  std::function<std::string(const std::vector<std::string>& nodes)>
      missing_workers;  // "node b at 10.0.0.2"; empty: all are there
  std::function<void(const JobUpdate&)> publish;
  std::function<void()> ended;
  std::function<void(const std::vector<StoreAnswer>&)> answer_store;
};

/// What a host has done since it last said so.
struct HostProgress {
  struct Step {
    int64_t step = 0;
    std::string metrics_json, local_json;  // local_json empty: as in the report before it
  };
  int64_t prepared = 0;  // 0: nothing new
  StepSamples bad;       // what it cannot read, of steps that became prepared
  std::vector<Step> steps;
};

/// Owner loop only.
class JobRunner {
 public:
  using Clock = OwnerLoop::Clock;
  JobRunner(std::string id, PlannedJob job, std::unique_ptr<RunFolder> folder, JobSurroundings surroundings);

  /// Feeds one event to the job's life and carries out its effects.
  void handle(const JobEvent& event);
  void host_hello(int slot, const std::string& incarnation, std::shared_ptr<HostPeer> peer);
  void host_progress(int slot, const HostProgress& progress);
  void host_evaluation(int slot, int64_t step, const std::string& json_text);
  void host_event(int slot, const std::string& kind, const std::string& json_text);
  void host_finished(int slot, const std::string& result_json);
  void task_line(const std::string& line);
  void process_spawned(int slot, int pid, const std::optional<Error>& error);
  void process_exited(int slot, HostExit exit, int group);
  void store_call(uint64_t number, const StoreCall& call);

  const std::string& id() const { return id_; }
  const PlannedJob& job() const { return job_; }
  RunFolder& folder() { return *folder_; }
  bool ended() const { return life_.phase() == JobPhase::kEnded; }
  std::vector<std::string> nodes() const;
  nlohmann::json status() const;
  const nlohmann::json& result() const { return result_; }
  HostPeer* peer(int slot) { return peers_[static_cast<size_t>(slot)].get(); }

 private:
  void carry_out(const JobEffect& effect);
  void say_resume();
  /// What a loop of one's own says when it finishes; not known before.
  std::optional<int64_t> steps_done() const;
  void start_index();
  void spawn_hosts();
  void assign(int slot);
  void publish_grant(const GrantState& grant);
  void terminate(std::chrono::milliseconds grace);
  void end(Outcome outcome);
  void schedule();
  void say(const std::string& line);
  /// Said, and kept in events.jsonl.
  void warn(const std::string& text);
  /// For writes that allow nothing: a failure is an event all the same.
  Journal::Done journalled();
  void journal_failed(const Error& error);
  void write_metrics(const std::vector<MetricsMerger::Line>& lines);
  void record_metrics(const std::string& lines);
  void show_progress();
  std::string step_text(const nlohmann::json& line);
  nlohmann::json hosts_json() const;
  nlohmann::json actors_of(int slot) const;
  Error index_error(int exit_code) const;

  std::string id_;
  PlannedJob job_;
  std::unique_ptr<RunFolder> folder_;
  JobSurroundings around_;
  Generation generation_{1};
  LatestCheckpoint resume_;
  std::vector<HostPlace> places_;
  JobLife life_;
  RendezvousStore store_;
  MetricsMerger metrics_;
  std::vector<std::shared_ptr<HostPeer>> peers_;
  std::vector<std::string> incarnations_;
  std::string index_incarnation_;
  nlohmann::json index_summary_, host_results_ = nlohmann::json::object(), result_;
  Clock::time_point scheduled_ = Clock::time_point::max(), started_, first_step_at_, last_progress_;
  int64_t first_step_seen_ = 0;
  std::string last_line_;                // of metrics.jsonl
  std::string indexed_set_ = "records";  // whose are looked at, as the index task says
  bool progress_due_ = false;            // last_line_ is to be shown
};

}  // namespace troupe::driver
