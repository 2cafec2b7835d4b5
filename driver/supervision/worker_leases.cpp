#include "driver/supervision/worker_leases.h"

#include <algorithm>

namespace troupe::driver {

WorkerLeases::WorkerLeases(std::vector<ExpectedWorker> expected, std::chrono::milliseconds lease,
                           std::chrono::milliseconds register_timeout, Time now)
    : lease_(lease), register_deadline_(now + register_timeout) {
  for (auto& worker : expected) workers_[worker.node].address = worker.address;
}

std::string WorkerLeases::registered(const std::string& node, const std::string& incarnation, Time now) {
  const auto at = workers_.find(node);
  if (at == workers_.end()) {
    std::string known;
    for (const auto& [name, worker] : workers_) known += (known.empty() ? "" : ", ") + name;
    return "node '" + node + "' is not in the cluster manifest; it has: " + known;
  }
  Worker& worker = at->second;
  if (std::find(worker.lost_incarnations.begin(), worker.lost_incarnations.end(), incarnation) !=
      worker.lost_incarnations.end())
    return "this worker of node '" + node + "' was given up; start a new one";
  if (worker.present && worker.incarnation != incarnation)
    return "a worker of node '" + node + "' is already registered";
  worker.present = true;
  worker.incarnation = incarnation;
  worker.heard = now;
  return {};
}

void WorkerLeases::heartbeat(const std::string& node, const std::string& incarnation, Time now) {
  const auto at = workers_.find(node);
  if (at != workers_.end() && at->second.present && at->second.incarnation == incarnation) at->second.heard = now;
}

bool WorkerLeases::stream_closed(const std::string& node, const std::string& incarnation) {
  const auto at = workers_.find(node);
  if (at == workers_.end() || !at->second.present || at->second.incarnation != incarnation) return false;
  at->second.present = false;
  at->second.lost_incarnations.push_back(incarnation);
  return true;
}

std::vector<std::string> WorkerLeases::expire(Time now) {
  std::vector<std::string> lost;
  for (auto& [node, worker] : workers_) {
    if (!worker.present || now - worker.heard < lease_) continue;
    worker.present = false;
    worker.lost_incarnations.push_back(worker.incarnation);
    lost.push_back(node);
  }
  return lost;
}

bool WorkerLeases::present(const std::string& node) const {
  const auto at = workers_.find(node);
  return at != workers_.end() && at->second.present;
}

bool WorkerLeases::all_present(const std::vector<std::string>& nodes) const {
  return std::all_of(nodes.begin(), nodes.end(), [this](const std::string& node) { return present(node); });
}

std::string WorkerLeases::missing(const std::vector<std::string>& nodes) const {
  std::string text;
  for (const auto& [node, worker] : workers_) {
    if (worker.present) continue;
    if (!nodes.empty() && std::find(nodes.begin(), nodes.end(), node) == nodes.end()) continue;
    text += (text.empty() ? "node " : ", node ") + node + (worker.address.empty() ? "" : " at " + worker.address);
  }
  return text;
}

}  // namespace troupe::driver
