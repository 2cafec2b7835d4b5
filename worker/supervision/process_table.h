#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// The processes of a worker from spawning to reaping, as a pure state machine: no process is forgotten before it was
/// reaped, and none outlives its deadline.
namespace troupe::worker {

/// What is to be done, in this order.
struct SendSignal {
  std::string incarnation;
  int pid;
  int signal;
};
struct ReportExit {
  std::string incarnation;
  int pid;
  int exit_code;
  int signal;
  std::chrono::milliseconds stopped{0};  // how long it had stood still when it was ended for that
};
using ProcessEffect = std::variant<SendSignal, ReportExit>;

/// Owner loop only.
class ProcessTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void spawned(const std::string& incarnation, int pid);
  /// SIGTERM now, SIGKILL after `grace`. A later call can only shorten the grace. Unknown incarnations are ignored:
  /// they ended.
  std::vector<ProcessEffect> terminate(const std::string& incarnation, std::chrono::milliseconds grace, Time now);
  std::vector<ProcessEffect> terminate_all(std::chrono::milliseconds grace, Time now);
  /// `pid` was reaped.
  std::vector<ProcessEffect> reaped(int pid, int exit_code, int signal);
  std::vector<ProcessEffect> tick(Time now);
  /// Whether `pid` was found stopped at `now`; to be told every second or more often. SIGKILL once it has been for
  /// `limit`: its peers wait for it. Of a gap between two looks a second counts, since then the worker itself stood
  /// still.
  std::vector<ProcessEffect> looked_at(int pid, bool stopped, std::chrono::milliseconds limit, Time now);
  std::vector<int> pids() const;
  std::optional<Time> next_deadline() const;
  bool empty() const { return processes_.empty(); }

 private:
  struct Process {
    int pid = 0;
    std::optional<Time> kill_at;
    bool killed = false;
    std::optional<Time> seen_stopped;
    std::chrono::milliseconds stopped{0};
    bool ended_for_that = false;
  };
  std::map<std::string, Process> processes_;
};

}  // namespace troupe::worker
