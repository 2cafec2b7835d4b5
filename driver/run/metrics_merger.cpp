#include "driver/run/metrics_merger.h"

namespace troupe::driver {
using nlohmann::json;
namespace {

/// `{"a": 1}` -> `"a": 1`; false when the text is no object or has no member.
bool members_of(const std::string& object, std::string& members) {
  const size_t first = object.find_first_not_of(" \t\n");
  if (first == std::string::npos || object[first] != '{' || !json::accept(object)) return false;
  std::string inner = object.substr(first + 1, object.rfind('}') - first - 1);
  if (inner.find('"') == std::string::npos) return false;
  members = std::move(inner);
  return true;
}

}  // namespace

std::vector<MetricsMerger::Line> MetricsMerger::add(int slot, int64_t step, const std::string& metrics_json,
                                                    const std::string& local_json) {
  Pending& pending = pending_[step];
  pending.heard.resize(slot_names_.size());
  if (!pending.heard[static_cast<size_t>(slot)]) {
    pending.heard[static_cast<size_t>(slot)] = true;
    ++pending.heard_count;
  }
  if (!metrics_json.empty() && members_of(metrics_json, pending.metrics)) pending.has_metrics = true;
  if (!local_json.empty()) {
    json local = json::parse(local_json, nullptr, false);
    if (local.is_object()) pending.changes.emplace_back(slot, std::move(local));
  }
  std::vector<Line> lines;
  while (!pending_.empty() && pending_.begin()->second.heard_count == slot_names_.size()) {
    auto first = pending_.extract(pending_.begin());
    stand(first.mapped());
    if (first.mapped().has_metrics) lines.push_back(line(first.key(), std::move(first.mapped())));
  }
  return lines;
}

std::vector<MetricsMerger::Line> MetricsMerger::rest() {
  std::vector<Line> lines;
  for (auto& [step, pending] : pending_) {
    stand(pending);
    if (pending.has_metrics) lines.push_back(line(step, std::move(pending)));
  }
  pending_.clear();
  return lines;
}

void MetricsMerger::stand(const Pending& pending) {
  if (pending.changes.empty()) return;
  for (const auto& [slot, local] : pending.changes) standing_[static_cast<size_t>(slot)] = local;
  json merged = json::object();
  for (size_t slot = 0; slot < standing_.size(); ++slot) {
    if (!standing_[slot].is_object()) continue;
    for (const auto& [key, value] : standing_[slot].items()) {
      json& into = merged[key];
      if (value.is_object() && (into.is_null() || into.is_object()))
        into.update(value);
      else if (!value.is_object())
        into[slot_names_[slot]] = value;
    }
  }
  if (!members_of(merged.dump(-1, ' ', false, json::error_handler_t::replace), standing_text_)) standing_text_.clear();
}

MetricsMerger::Line MetricsMerger::line(int64_t step, Pending pending) {
  std::string text = "{" + std::move(pending.metrics);
  if (!standing_text_.empty()) text += "," + standing_text_;
  return {step, text + "}"};
}

}  // namespace troupe::driver
