#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/amount_text.h"
#include "base/config/diagnostics.h"
#include "driver/plan/job_plan.h"

namespace troupe {
namespace {

using Row = std::vector<std::string>;

/// Columns padded to their widest cell, two spaces between them.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string placement_name(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::kColocated:
      return "colocated";
    case PlacementKind::kDisjoint:
      return "disjoint";
    case PlacementKind::kCounts:
      return "slot counts";
    case PlacementKind::kExplicit:
      return "slot lists";
  }
  return "";
}

std::string dtype_text(DType dtype) {
  return dtype == DType::kFp32 ? "fp32" : dtype == DType::kBf16 ? "bf16" : "bf16-pure";
}

/// "a:0-3, b:1": runs of consecutive slots of a node joined.
std::string slots_text(const std::vector<Slot>& slots, const std::vector<int>& used) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < used.size();) {
    const Slot& first = slots[static_cast<size_t>(used[i])];
    size_t end = i + 1;
    while (end < used.size()) {
      const Slot& next = slots[static_cast<size_t>(used[end])];
      if (next.node != first.node || next.index != first.index + static_cast<int>(end - i)) break;
      ++end;
    }
    runs.push_back(first.name());
    if (end - i > 1) runs.back() += "-" + std::to_string(slots[static_cast<size_t>(used[end - 1])].index);
    i = end;
  }
  // A line of a table has room for a few runs only; the table of slots has them all.
  if (runs.size() > 3) return runs.front() + " ... " + runs.back();
  return join_words(runs);
}

/// The rank that needs most.
const RankMemory& largest(const GroupPlan& g) {
  return *std::max_element(g.ranks.begin(), g.ranks.end(),
                           [](const RankMemory& a, const RankMemory& b) { return a.total_bytes() < b.total_bytes(); });
}

std::string batch_text(const JobPlan& plan, const JobSpec& spec) {
  const TrainingSpec& t = spec.training;
  for (const GroupPlan& g : plan.groups) {
    if (std::find(g.components.begin(), g.components.end(), "text") == g.components.end()) continue;
    const int64_t dp = g.mesh.size(Axis::kDp);
    std::string text = std::to_string(t.global_batch) + " samples a step";
    const std::string lanes = std::to_string(dp) + (dp == 1 ? " text lane" : " text lanes");
    if (t.microbatch_tokens > 0)
      return text + " over " + lanes + ", units of up to " + std::to_string(t.microbatch_tokens) + " tokens";
    if (spec.data.pack_tokens > 0)
      return text + " over " + lanes + ", packed to " + std::to_string(spec.data.pack_tokens) + " tokens";
    const int64_t units = t.global_batch / (dp * t.microbatch_samples);
    return text + " = " + lanes + " x " + std::to_string(units) + (units == 1 ? " unit x " : " units x ") +
           std::to_string(t.microbatch_samples) + (t.microbatch_samples == 1 ? " sample" : " samples");
  }
  return std::to_string(t.global_batch) + " samples a step";
}

std::string group_table(const JobPlan& plan) {
  std::vector<Row> rows = {{"group", "components", "mesh", "ranks", "zero", "slots", "parameters", "a rank", "weights",
                            "gradients", "optimizer", "total"}};
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupPlan& g = plan.groups[i];
    const RankMemory& m = largest(g);
    rows.push_back({g.name, join_words(g.components, "+"), g.mesh.to_string(), std::to_string(g.mesh.ranks()),
                    std::to_string(g.zero), slots_text(plan.slots, plan.group_slots[i]), count_text(g.parameters),
                    count_text(m.parameters), bytes_text(m.weights_bytes), bytes_text(m.gradients_bytes),
                    bytes_text(m.optimizer_bytes), bytes_text(m.total_bytes())});
  }
  return table(rows);
}

std::vector<std::string> actors_of_slot(const JobPlan& plan, size_t slot) {
  std::vector<std::string> out;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (size_t r = 0; r < plan.group_slots[g].size(); ++r)
      if (plan.group_slots[g][r] == static_cast<int>(slot))
        out.push_back(plan.groups[g].name + "/" + std::to_string(r));
  return out;
}

std::string slot_table(const JobPlan& plan) {
  std::vector<Row> rows = {{"slot", "device", "threads", "actors", "memory"}};
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    std::string memory = bytes_text(plan.slot_bytes[s]);
    if (slot.memory_bytes > 0 && !slot.shares_memory) memory += " of " + bytes_text(slot.memory_bytes);
    rows.push_back({slot.name(), slot.device, slot.device == "cpu" ? std::to_string(slot.threads) : "-",
                    join_words(actors_of_slot(plan, s)), memory});
  }
  return table(rows);
}

/// Against what the slots' memory was held, where the table does not say.
std::string memory_line(const JobPlan& plan) {
  const Slot& first = plan.slots.front();
  if (first.memory_bytes == 0)
    return "how much memory a device has is not known; `memory_gib` of a manifest says it, and what does not fit is "
           "then refused\n";
  if (!first.shares_memory) return "";
  int64_t sum = 0;
  for (const int64_t bytes : plan.slot_bytes) sum += bytes;
  return "all slots together take " + bytes_text(sum) + " of " + bytes_text(first.memory_bytes) +
         " that this machine has available\n";
}

nlohmann::json group_json(const JobPlan& plan, size_t index) {
  const GroupPlan& g = plan.groups[index];
  nlohmann::json ranks = nlohmann::json::array();
  for (size_t r = 0; r < g.ranks.size(); ++r) {
    const RankMemory& m = g.ranks[r];
    ranks.push_back({{"rank", r},
                     {"slot", plan.group_slots[index][r]},
                     {"parameters", m.parameters},
                     {"weights_bytes", m.weights_bytes},
                     {"gradients_bytes", m.gradients_bytes},
                     {"optimizer_bytes", m.optimizer_bytes},
                     {"total_bytes", m.total_bytes()}});
  }
  return {{"name", g.name},
          {"components", g.components},
          {"zero", g.zero},
          {"parameters", g.parameters},
          {"trained_parameters", g.trained_parameters},
          {"mesh", {{"dp", g.mesh.size(Axis::kDp)}, {"sp", g.mesh.size(Axis::kSp)}, {"tp", g.mesh.size(Axis::kTp)}}},
          {"ranks", ranks}};
}

}  // namespace

std::string render_plan(const JobPlan& plan, const JobSpec& spec) {
  std::set<std::string> nodes;
  for (const Slot& s : plan.slots) nodes.insert(s.node);
  std::string out = "job " + spec.name + ": " + count_text(plan.parameters) + " parameters, " +
                    dtype_text(spec.model.dtype) + ", " + std::to_string(plan.slots.size()) +
                    (plan.slots.size() == 1 ? " slot on " : " slots on ") + std::to_string(nodes.size()) +
                    (nodes.size() == 1 ? " node, " : " nodes, ") + placement_name(spec.placement.kind) + "\n";
  out += "batch: " + batch_text(plan, spec) + "\n\n";
  out += group_table(plan) + "\n" + slot_table(plan);
  out += "memory is that of weights, gradients and optimizer; activations come on top\n" + memory_line(plan);
  for (const std::string& w : plan.warnings) out += "warning: " + w + "\n";
  return out;
}

nlohmann::json plan_json(const JobPlan& plan, const JobSpec& spec) {
  nlohmann::json out = {{"name", spec.name},
                        {"parameters", plan.parameters},
                        {"dtype", dtype_text(spec.model.dtype)},
                        {"placement", placement_name(spec.placement.kind)},
                        {"global_batch", spec.training.global_batch},
                        {"warnings", plan.warnings}};
  out["groups"] = nlohmann::json::array();
  for (size_t g = 0; g < plan.groups.size(); ++g) out["groups"].push_back(group_json(plan, g));
  out["slots"] = nlohmann::json::array();
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    out["slots"].push_back({{"node", slot.node},
                            {"index", slot.index},
                            {"device", slot.device},
                            {"threads", slot.threads},
                            {"data_address", slot.data_address},
                            {"actors", actors_of_slot(plan, s)},
                            {"bytes", plan.slot_bytes[s]},
                            {"memory_bytes", slot.memory_bytes},
                            {"shares_memory", slot.shares_memory}});
  }
  return out;
}

}  // namespace troupe
