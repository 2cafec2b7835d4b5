#include "driver/run/metrics_merger.h"

#include <algorithm>

namespace troupe::driver {
using nlohmann::json;

std::vector<json> MetricsMerger::add(int slot, int64_t step, const std::string& metrics_json, const std::string& local_json) {
  Pending& pending = pending_[step];
  pending.heard.resize(slot_names_.size());
  pending.heard[static_cast<size_t>(slot)] = true;
  const json metrics = json::parse(metrics_json, nullptr, false);
  if (metrics.is_object())
    for (const auto& [key, value] : metrics.items()) pending.metrics[key] = value;
  const json local = json::parse(local_json, nullptr, false);
  if (local.is_object()) {
    for (const auto& [key, value] : local.items()) {
      json& into = pending.local[key];
      if (value.is_object())
        into.update(value);
      else
        into[slot_names_[static_cast<size_t>(slot)]] = value;
    }
  }
  std::vector<json> lines;
  while (!pending_.empty()) {
    const auto first = pending_.begin();
    if (!std::all_of(first->second.heard.begin(), first->second.heard.end(), [](bool heard) { return heard; })) break;
    if (!first->second.metrics.empty()) lines.push_back(line(std::move(first->second)));
    pending_.erase(first);
  }
  return lines;
}

std::vector<json> MetricsMerger::rest() {
  std::vector<json> lines;
  for (auto& [step, pending] : pending_)
    if (!pending.metrics.empty()) lines.push_back(line(std::move(pending)));
  pending_.clear();
  return lines;
}

json MetricsMerger::line(Pending pending) {
  for (const auto& [key, value] : pending.local.items()) pending.metrics[key] = value;
  return std::move(pending.metrics);
}

}  // namespace troupe::driver
