#include "worker/supervision/process_table.h"

#include <algorithm>
#include <csignal>

namespace troupe::worker {

void ProcessTable::spawned(const std::string& incarnation, int pid) { processes_[incarnation].pid = pid; }

std::vector<ProcessEffect> ProcessTable::terminate(const std::string& incarnation, std::chrono::milliseconds grace,
                                                   Time now) {
  const auto at = processes_.find(incarnation);
  if (at == processes_.end()) return {};
  Process& process = at->second;
  const bool first = !process.kill_at;
  if (first || now + grace < *process.kill_at) process.kill_at = now + grace;
  if (!first) return {};
  return {SendSignal{incarnation, process.pid, SIGTERM}};
}

std::vector<ProcessEffect> ProcessTable::terminate_all(std::chrono::milliseconds grace, Time now) {
  std::vector<ProcessEffect> effects;
  for (const auto& [incarnation, process] : processes_)
    for (auto& effect : terminate(incarnation, grace, now)) effects.push_back(std::move(effect));
  return effects;
}

std::vector<ProcessEffect> ProcessTable::reaped(int pid, int exit_code, int signal) {
  for (auto at = processes_.begin(); at != processes_.end(); ++at) {
    if (at->second.pid != pid) continue;
    ReportExit report{at->first, pid, exit_code, signal, {}};
    if (at->second.ended_for_that) report.stopped = at->second.stopped;
    processes_.erase(at);
    return {std::move(report)};
  }
  return {};
}

std::vector<ProcessEffect> ProcessTable::tick(Time now) {
  std::vector<ProcessEffect> effects;
  for (auto& [incarnation, process] : processes_) {
    if (process.killed || !process.kill_at || *process.kill_at > now) continue;
    process.killed = true;
    effects.push_back(SendSignal{incarnation, process.pid, SIGKILL});
  }
  return effects;
}

std::vector<ProcessEffect> ProcessTable::looked_at(int pid, bool stopped, std::chrono::milliseconds limit, Time now) {
  constexpr std::chrono::seconds kMostBetweenLooks{1};
  for (auto& [incarnation, process] : processes_) {
    if (process.pid != pid) continue;
    if (process.killed) return {};
    if (!stopped) {
      process.seen_stopped.reset();
      process.stopped = std::chrono::milliseconds(0);
      return {};
    }
    if (process.seen_stopped)
      process.stopped += std::chrono::duration_cast<std::chrono::milliseconds>(
          std::min<Time::duration>(now - *process.seen_stopped, kMostBetweenLooks));
    process.seen_stopped = now;
    if (process.stopped < limit) return {};
    process.killed = process.ended_for_that = true;
    return {SendSignal{incarnation, pid, SIGKILL}};
  }
  return {};
}

std::vector<int> ProcessTable::pids() const {
  std::vector<int> pids;
  for (const auto& [incarnation, process] : processes_) pids.push_back(process.pid);
  return pids;
}

std::optional<ProcessTable::Time> ProcessTable::next_deadline() const {
  std::optional<Time> next;
  for (const auto& [incarnation, process] : processes_)
    if (process.kill_at && !process.killed && (!next || *process.kill_at < *next)) next = process.kill_at;
  return next;
}

}  // namespace troupe::worker
