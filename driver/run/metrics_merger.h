#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

/// Puts the hosts' reports of a step together into one line of metrics.jsonl.
namespace troupe::driver {

/// One host reports the step's metrics, every host its local figures. A local figure that is a number becomes {slot:
/// number} under its key, an object is merged under its key. Lines leave in the order of steps. Owner loop only. Cost:
/// local figures are only read when they change, a step's metrics are checked and copied as text.
class MetricsMerger {
 public:
  /// A complete line (a JSON object, no newline).
  struct Line {
    int64_t step = 0;
    std::string text;
  };
  /// `slot_names`: "node:index" of each host.
  explicit MetricsMerger(std::vector<std::string> slot_names)
      : slot_names_(std::move(slot_names)), standing_(slot_names_.size()) {}
  /// Returns the lines that are complete now. Text that is no JSON object counts as empty; empty local figures stand as
  /// they were.
  std::vector<Line> add(int slot, int64_t step, const std::string& metrics_json, const std::string& local_json);
  /// What is left when the job ends: incomplete lines that have their metrics.
  std::vector<Line> rest();

 private:
  struct Pending {
    std::string metrics;  // the object's members, without braces
    bool has_metrics = false;
    std::vector<std::pair<int, nlohmann::json>> changes;  // [(slot, local figures from this step on)]
    std::vector<bool> heard;
    size_t heard_count = 0;
  };
  void stand(const Pending& pending);
  Line line(int64_t step, Pending pending);

  std::vector<std::string> slot_names_;
  std::vector<nlohmann::json> standing_;  // [slot] local figures as of the last line
  std::string standing_text_;             // these merged: members without braces
  std::map<int64_t, Pending> pending_;
};

}  // namespace troupe::driver
