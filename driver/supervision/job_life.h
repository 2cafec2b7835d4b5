#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "driver/supervision/blame.h"
#include "driver/supervision/grant_window.h"
#include "driver/supervision/host_place.h"
#include "driver/supervision/outcome.h"

/// The life of one job as a pure state machine: `step(event, now) -> effects`. No thread, clock, socket or file inside.
namespace troupe::driver {

enum class JobPhase { kWaiting, kIndexing, kSpawning, kLoading, kRunning, kFinishing, kGathering, kStopping, kEnded };
const char* job_phase_name(JobPhase phase);

struct JobLifeOptions {
  std::vector<HostPlace> places;
  bool needs_index = false;
  bool prepared_when_ready = false;  // evaluation: one step, and nothing is decoded ahead
  bool reports_steps = true;         // false: a loop of one's own takes its time, which is nobody's delay
  int64_t window = 4;  // steps that may be granted, whatever they take, beyond the last that all hosts have done
  int64_t first_step = 1;
  std::chrono::milliseconds waiting_line{30000};    // silence after which it is said who is waited for
  std::chrono::milliseconds terminate_grace{2000};  // SIGTERM to SIGKILL
  std::chrono::milliseconds stop_timeout{
      12000};  // after which the job ends even if a worker never reported a host's end
  std::chrono::milliseconds save_grace{300000};
  std::chrono::milliseconds finish_timeout{20000};  // for hosts to exit after the last has finished
  std::chrono::milliseconds loop_timeout{20000};    // for hosts to say that a loop has finished the job, after it left
};

/// How a loop of one's own left: with status 0, otherwise, or by a signal that it was sent, with or without having
/// saved.
enum class LoopEnd { kLeft, kFailed, kStopped, kSaved };

/// What happens to a job. Slots are positions in `places`.
namespace job_event {
struct WorkersReady {};
struct WorkersMissing {
  std::string who;
  std::string waited;
};
struct IndexDone {};
struct IndexFailed {
  Error error;
  bool refusal = false;
};
struct HostSpawned {
  int slot;
  int pid;
};
struct SpawnFailed {
  int slot;
  Error error;
};
struct HostHello {
  int slot;
};
struct HostPhase {
  int slot;
  std::string phase;
};
struct HostReady {
  int slot;
};
struct HostPrepared {
  int slot;
  int64_t step;
  StepSamples bad = {};
};
struct HostStep {
  int slot;
  int64_t step;
};
struct HostFinished {
  int slot;
};
struct HostError {
  int slot;
  Error error;
};
struct HostExited {
  int slot;
  HostExit exit;
};
struct LinkLost {
  int slot;
};
struct WorkerLost {
  std::string node;
};
/// A write to the journal failed: what it would have allowed does not happen.
struct JournalFailed {
  Error error;
};
/// The run folder takes no more lines.
struct RunFolderFailed {
  Error error;
};
struct Cancel {
  bool interrupt = false;
};  // interrupt: Ctrl-C
struct Save {};
/// A host was told by a loop of one's own that it is done.
struct HostFinishing {
  int slot;
};
/// A loop of one's own has left. `error` says so, should it not have finished the job.
struct LoopEnded {
  LoopEnd how;
  Error error;
};
struct Tick {};
}  // namespace job_event
using JobEvent =
    std::variant<job_event::WorkersReady, job_event::WorkersMissing, job_event::IndexDone, job_event::IndexFailed,
                 job_event::HostSpawned, job_event::SpawnFailed, job_event::HostHello, job_event::HostPhase,
                 job_event::HostReady, job_event::HostPrepared, job_event::HostStep, job_event::HostFinished,
                 job_event::HostError, job_event::HostExited, job_event::LinkLost, job_event::WorkerLost,
                 job_event::JournalFailed, job_event::RunFolderFailed, job_event::Cancel, job_event::Save,
                 job_event::HostFinishing, job_event::LoopEnded, job_event::Tick>;

/// What is to be done about it, in this order.
namespace job_effect {
struct StartIndex {};
struct SpawnHosts {};
struct AssignHost {
  int slot;
};
struct PublishGrant {
  GrantState grant;
};  // after it is journalled; JournalFailed when it cannot be
struct Terminate {
  std::chrono::milliseconds grace;
};  // every host and task that still lives
struct PhaseChanged {
  JobPhase phase;
};
struct Waiting {
  std::string text;
};  // "loading: waiting for text/1 (node a, slot 1: loading weights)"
struct End {
  Outcome outcome;
};
}  // namespace job_effect
using JobEffect =
    std::variant<job_effect::StartIndex, job_effect::SpawnHosts, job_effect::AssignHost, job_effect::PublishGrant,
                 job_effect::Terminate, job_effect::PhaseChanged, job_effect::Waiting, job_effect::End>;

/// Owner loop only. In this version the loss of any host ends the job with its first cause.
class JobLife {
 public:
  using Time = std::chrono::steady_clock::time_point;
  JobLife(JobLifeOptions options, Time now);

  std::vector<JobEffect> step(const JobEvent& event, Time now);
  /// When a Tick is due next.
  Time next_deadline() const;
  JobPhase phase() const { return phase_; }
  const GrantState& grant() const { return window_.state(); }
  int64_t steps_done() const { return window_.done_by_all(); }
  int pid(int slot) const { return hosts_[static_cast<size_t>(slot)].pid; }
  const std::string& host_phase(int slot) const { return hosts_[static_cast<size_t>(slot)].phase; }

 private:
  struct Host {
    int pid = 0;
    bool spawned = false, helloed = false, ready = false, finishing = false, finished = false, exited = false;
    std::string phase = "waiting";
  };
  using Effects = std::vector<JobEffect>;
  void on(const job_event::WorkersReady&);
  void on(const job_event::WorkersMissing&);
  void on(const job_event::IndexDone&);
  void on(const job_event::IndexFailed&);
  void on(const job_event::HostSpawned&);
  void on(const job_event::SpawnFailed&);
  void on(const job_event::HostHello&);
  void on(const job_event::HostPhase&);
  void on(const job_event::HostReady&);
  void on(const job_event::HostPrepared&);
  void on(const job_event::HostStep&);
  void on(const job_event::HostFinished&);
  void on(const job_event::HostError&);
  void on(const job_event::HostExited&);
  void on(const job_event::LinkLost&);
  void on(const job_event::WorkerLost&);
  void on(const job_event::JournalFailed&);
  void on(const job_event::RunFolderFailed&);
  void on(const job_event::Cancel&);
  void on(const job_event::Save&);
  void on(const job_event::HostFinishing&);
  void on(const job_event::LoopEnded&);
  void on(const job_event::Tick&);

  bool ending() const { return phase_ >= JobPhase::kStopping; }
  bool any_process() const;
  void enter(JobPhase phase);
  void request_hosts();
  void gather();
  void conclude();
  void stop_with(Outcome outcome);
  void end();
  void end_when_empty();
  void judge_loop();
  Outcome failure(const std::string& kind, Error error) const;
  std::string waiting_text() const;

  JobLifeOptions options_;
  std::vector<Host> hosts_;
  GrantWindow window_;
  Blame blame_;
  JobPhase phase_ = JobPhase::kWaiting;
  bool spawn_requested_ = false, save_requested_ = false;
  Outcome outcome_;
  Time now_, quiet_since_;
  std::optional<Time> deadline_;  // of the phase under way
  std::optional<Time> loop_due_;  // for hosts to say that the loop which left had finished the job
  std::optional<job_event::LoopEnded> loop_end_;
  Effects effects_;
};

}  // namespace troupe::driver
