#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// Puts the hosts' reports of a step together into one line of metrics.jsonl.
namespace troupe::driver {

/// One host reports the step's metrics, every host its local figures. A local figure that is a number becomes {slot: number} under
/// its key, an object is merged under its key. Lines leave in the order of steps. Owner loop only.
class MetricsMerger {
 public:
  /// `slot_names`: "node:index" of each host.
  explicit MetricsMerger(std::vector<std::string> slot_names) : slot_names_(std::move(slot_names)) {}
  /// Returns the lines that are complete now. Text that is no JSON object counts as empty.
  std::vector<nlohmann::json> add(int slot, int64_t step, const std::string& metrics_json, const std::string& local_json);
  /// What is left when the job ends: incomplete lines that have their metrics.
  std::vector<nlohmann::json> rest();

 private:
  struct Pending {
    nlohmann::json metrics = nlohmann::json::object(), local = nlohmann::json::object();
    std::vector<bool> heard;
  };
  static nlohmann::json line(Pending pending);

  std::vector<std::string> slot_names_;
  std::map<int64_t, Pending> pending_;
};

}  // namespace troupe::driver
