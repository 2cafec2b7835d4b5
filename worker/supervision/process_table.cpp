#include "worker/supervision/process_table.h"

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
    ReportExit report{at->first, pid, exit_code, signal};
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

std::optional<ProcessTable::Time> ProcessTable::next_deadline() const {
  std::optional<Time> next;
  for (const auto& [incarnation, process] : processes_)
    if (process.kill_at && !process.killed && (!next || *process.kill_at < *next)) next = process.kill_at;
  return next;
}

}  // namespace troupe::worker
