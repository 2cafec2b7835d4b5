#include "driver/plan/job_plan.h"

#include <algorithm>
#include <cstdio>

#include "base/config/job_spec_parser.h"
#include "base/model/parameter.h"

namespace troupe {
namespace {

/// Bytes of one parameter element in each of its roles.
struct ElementBytes {
  int64_t weight, gradient, optimizer;
};

ElementBytes element_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return {4, 4, 8};  // two moments; the weights are their own masters
    case DType::kBf16:
      return {2, 4, 12};  // two moments and master weights in fp32
    case DType::kBf16Pure:
      return {2, 2, 4};  // two moments in bf16
  }
  return {4, 4, 8};
}

bool holds(const GroupPlan& g, const std::string& component) {
  return std::find(g.components.begin(), g.components.end(), component) != g.components.end();
}

int64_t local_elements(const ParameterDecl& p, const ModelConfig& config, int tp, int rank) {
  const LocalSlice s = local_slice(p, config, tp, rank);
  const int64_t along = p.shape[static_cast<size_t>(s.dim)];
  return p.elements() / along * (s.end - s.begin + s.padding);
}

RankMemory rank_memory(const GroupPlan& g, const JobSpec& spec, const ModelConfig& config,
                       const std::vector<ParameterDecl>& parameters, int rank) {
  const int tp = g.mesh.size(Axis::kTp), tp_rank = g.mesh.coordinate(rank, Axis::kTp);
  RankMemory m;
  int64_t trained = 0;
  for (const ParameterDecl& p : parameters) {
    if (!holds(g, p.component)) continue;
    const int64_t n = local_elements(p, config, tp, tp_rank);
    m.parameters += n;
    if (spec.components.at(p.component).train) trained += n;
  }
  const ElementBytes bytes = element_bytes(spec.model.dtype);
  const int64_t shards = g.zero == 0 ? 1 : g.mesh.size({Axis::kDp, Axis::kSp});
  const int64_t shard = (trained + shards - 1) / shards;
  m.weights_bytes = m.parameters * bytes.weight;
  m.gradients_bytes = (trained + (shards > 1 ? shard : 0)) * bytes.gradient;
  m.optimizer_bytes = shard * bytes.optimizer;
  return m;
}

GroupPlan plan_group(const GroupSpec& g, const JobSpec& spec, const ModelConfig& config,
                     const std::vector<ParameterDecl>& parameters) {
  GroupPlan out;
  out.name = g.name;
  out.components = g.components;
  out.mesh = g.mesh;
  out.zero = g.zero;
  for (const ParameterDecl& p : parameters) {
    if (!holds(out, p.component)) continue;
    out.parameters += p.elements();
    if (spec.components.at(p.component).train) out.trained_parameters += p.elements();
  }
  // Ranks that differ only along dp and sp hold the same: the tp rank decides.
  const int tp = g.mesh.size(Axis::kTp);
  std::vector<RankMemory> of_tp_rank;
  for (int r = 0; r < tp; ++r)
    of_tp_rank.push_back(rank_memory(out, spec, config, parameters, g.mesh.with(0, Axis::kTp, r)));
  for (int r = 0; r < g.mesh.ranks(); ++r)
    out.ranks.push_back(of_tp_rank[static_cast<size_t>(g.mesh.coordinate(r, Axis::kTp))]);
  return out;
}

std::string gib(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB", static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30));
  return text;
}

/// Weights, gradients and optimizer of every rank on a slot.
std::string ranks_text(const JobPlan& plan, size_t slot) {
  std::string parts;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (size_t r = 0; r < plan.group_slots[g].size(); ++r)
      if (plan.group_slots[g][r] == static_cast<int>(slot)) {
        const RankMemory& m = plan.groups[g].ranks[r];
        parts += (parts.empty() ? "" : "; ") + plan.groups[g].name + "/" + std::to_string(r) + ": weights " +
                 gib(m.weights_bytes) + " + gradients " + gib(m.gradients_bytes) + " + optimizer " +
                 gib(m.optimizer_bytes);
      }
  return parts;
}

/// Slots of one memory are judged by their sum.
Status check_shared_memory(const JobPlan& plan) {
  int64_t available = 0, needed = 0;
  std::string parts;
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    if (!plan.slots[s].shares_memory) continue;
    available = plan.slots[s].memory_bytes;
    needed += plan.slot_bytes[s];
    parts += (parts.empty() ? "" : "; ") + ranks_text(plan, s);
  }
  if (available == 0 || needed <= available) return {};
  return invalid_argument("this machine has " + gib(available) +
                          " of memory available, the ranks on its CPU slots need " + gib(needed) +
                          " before any activation (" + parts +
                          "); valid: zero: 1, dtype bf16-pure, less dp, a smaller model, or --cluster FILE");
}

Status check_memory(const JobPlan& plan) {
  TROUPE_RETURN_IF_ERROR(check_shared_memory(plan));
  for (size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.shares_memory || slot.memory_bytes == 0 || plan.slot_bytes[s] <= slot.memory_bytes) continue;
    return invalid_argument("slot " + slot.name() + " (" + slot.device + ") has " + gib(slot.memory_bytes) +
                            ", its ranks need " + gib(plan.slot_bytes[s]) + " before any activation (" +
                            ranks_text(plan, s) + "); valid: larger sp, tp or dp with zero: 1, or other slots");
  }
  return {};
}

}  // namespace

Result<JobPlan> plan_job(const JobSpec& spec, const Manifest* manifest, const ModelConfig& config,
                         const Machine& machine) {
  TROUPE_RETURN_IF_ERROR(check_heads(spec, config));
  TROUPE_ASSIGN(const std::vector<Slot> available, available_slots(spec, manifest, machine));
  TROUPE_ASSIGN(Placement placement, place_groups(spec, available));
  JobPlan plan;
  plan.slots = std::move(placement.slots);
  plan.group_slots = std::move(placement.group_slots);
  plan.warnings = spec.warnings;
  plan.slot_bytes.assign(plan.slots.size(), 0);
  for (const ParameterDecl& p : model_parameters(config, false)) plan.parameters += p.elements();
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    const std::vector<ParameterDecl> parameters = model_parameters(config, spec.groups[g].tp_sequence);
    plan.groups.push_back(plan_group(spec.groups[g], spec, config, parameters));
    for (size_t r = 0; r < plan.group_slots[g].size(); ++r)
      plan.slot_bytes[static_cast<size_t>(plan.group_slots[g][r])] += plan.groups[g].ranks[r].total_bytes();
  }
  TROUPE_RETURN_IF_ERROR(check_memory(plan));
  return plan;
}

}  // namespace troupe
