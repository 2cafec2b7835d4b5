#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/loop/owner_loop.h"
#include "driver/journal/journal.h"
#include "driver/run/job_runner.h"
#include "driver/run/peers.h"
#include "driver/supervision/worker_leases.h"

/// The driver: owns jobs and workers on one loop. The gRPC services and the command line only post to it.
namespace troupe::driver {

struct DriverOptions {
  std::vector<ExpectedWorker> workers;
  std::string journal_path = ":memory:";
  std::string address;  // where clients reach it; written into run folders
  std::chrono::milliseconds lease{10000};
  std::chrono::milliseconds register_timeout{60000};
};

/// Thread-safe.
class Driver {
 public:
  using Watcher = std::function<void(const JobUpdate&)>;  // called on the owner loop; must not block
  using StoreReply = std::function<void(const StoreAnswer&)>;
  /// With a journal of its own, at `options.journal_path`.
  static Result<std::unique_ptr<Driver>> create(DriverOptions options);
  static std::unique_ptr<Driver> create(DriverOptions options, std::unique_ptr<Journal> journal);
  ~Driver();

  Term term() const { return journal_->term(); }
  std::chrono::milliseconds lease() const { return options_.lease; }
  void set_address(const std::string& address);

  /// Accepts a planned job: makes its run folder and queues it. Returns the job's id.
  Result<std::string> submit(PlannedJob job);
  Result<std::string> status_json(const std::string& job_id);  // empty: all
  Status cancel(const std::string& job_id, bool interrupt = false);
  /// Save and stop in order (SIGTERM): a job that has not begun to run is cancelled.
  Status save_and_stop(const std::string& job_id);
  /// The loop that drives the job from outside has left. `error`: what the job fails with unless its hosts say that the
  /// loop had finished it.
  Status loop_ended(const std::string& job_id, LoopEnd how, const Error& error);
  /// Everything said so far, then what comes; after kEnd nothing more. Returns a number for unwatch.
  Result<int> watch(const std::string& job_id, Watcher watcher);
  void unwatch(const std::string& job_id, int number);
  /// The log files of the hosts with actors of `group` (empty: all) and `rank` (-1: all).
  Result<std::vector<std::string>> log_files(const std::string& job_id, const std::string& group, int rank);
  bool job_ended(const std::string& job_id);
  void cancel_all();
  /// No job is queued or running.
  bool idle();
  /// Before the server ends: answers every rendezvous wait, takes no more of them, tells workers to end everything and
  /// go.
  void close();
  /// How many workers are present (for tests and `status`).
  int workers_present();

  // Workers; called by the service. `peer` is kept until worker_gone.
  Status worker_registered(const std::string& node, const std::string& incarnation, uint64_t highest_term,
                           std::shared_ptr<WorkerPeer> peer);
  void worker_heartbeat(const std::string& node, const std::string& incarnation);
  void worker_gone(const std::string& node, const std::string& incarnation);
  void process_spawned(const std::string& incarnation, int pid, std::optional<Error> error);
  void process_exited(const std::string& incarnation, HostExit exit, int group);
  void task_line(const std::string& incarnation, const std::string& line);

  // Hosts.
  using HostCall = std::function<void(JobRunner&)>;
  void host_hello(const std::string& job_id, int slot, const std::string& incarnation, std::shared_ptr<HostPeer> peer);
  void host_report(const std::string& job_id, HostCall call);
  void host_gone(const std::string& job_id, int slot);
  void store_call(const std::string& job_id, const StoreCall& call, StoreReply reply);

 private:
  struct Job {
    std::unique_ptr<JobRunner> runner;
    std::vector<JobUpdate> said;  // lines and the end; progress is not kept
    std::map<int, Watcher> watchers;
    bool started = false;
  };
  struct Process {
    std::string job;
    int slot = -1;
  };
  explicit Driver(DriverOptions options, std::unique_ptr<Journal> journal);
  Job* find(const std::string& id);
  JobSurroundings surroundings(const std::string& id);
  void publish(const std::string& id, const JobUpdate& update);
  void lose_worker(const std::string& node);
  void start_what_can();
  void tick();

  DriverOptions options_;
  std::unique_ptr<Journal> journal_;
  OwnerLoop loop_;
  WorkerLeases leases_;
  std::map<std::string, std::shared_ptr<WorkerPeer>> workers_;
  std::map<std::string, Job> jobs_;
  std::list<std::string> queue_;              // in order of submission
  std::map<std::string, Process> processes_;  // by incarnation
  std::map<uint64_t, StoreReply> store_replies_;
  uint64_t last_store_call_ = 0;
  int last_watcher_ = 0;
  bool closed_ = false;
};

}  // namespace troupe::driver
