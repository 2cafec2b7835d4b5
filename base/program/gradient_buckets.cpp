#include "base/program/gradient_buckets.h"

#include <algorithm>

namespace troupe {
namespace {

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Ranks of tp that hold uneven parts count alike, so that they cut alike.
int64_t elements_of(const ParameterDecl& p, int tp) {
  return p.tp_layout == TpLayout::kReplicated ? p.elements() : (p.elements() + tp - 1) / tp;
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const std::vector<ParameterDecl>& parameters,
                                             const std::vector<std::string>& frozen, int tp, int64_t most_elements) {
  std::vector<GradientBucket> buckets;
  int64_t held = 0;
  for (int i = static_cast<int>(parameters.size()) - 1; i >= 0; --i) {
    const ParameterDecl& p = parameters[static_cast<size_t>(i)];
    if (holds(frozen, p.component)) continue;
    const int64_t elements = elements_of(p, tp);
    const bool goes_on = !buckets.empty() && buckets.back().first == i + 1 &&
                         parameters[static_cast<size_t>(i) + 1].component == p.component &&
                         (most_elements == 0 || held + elements <= most_elements);
    if (goes_on) {
      buckets.back().first = i;
      held += elements;
    } else {
      buckets.push_back({i, i + 1});
      held = elements;
    }
  }
  return buckets;
}

int64_t most_bucket_elements(const JobSpec& spec, const GroupSpec& group) {
  if (group.mesh.ranks() == 1) return 0;
  const int64_t element_bytes = spec.model.dtype == DType::kBf16Pure ? 2 : 4;
  return std::max<int64_t>(1, spec.training.bucket_bytes / element_bytes);
}

std::vector<int> gradient_bucket_counts(const JobSpec& spec, const ModelConfig& config) {
  std::vector<int> counts;
  for (const GroupSpec& group : spec.groups) {
    std::vector<ParameterDecl> held;
    for (ParameterDecl& p : model_parameters(config, group.tp_sequence))
      if (holds(group.components, p.component)) held.push_back(std::move(p));
    std::vector<std::string> frozen;
    for (const std::string& name : group.components) {
      const auto component = spec.components.find(name);
      if (component != spec.components.end() && !component->second.train) frozen.push_back(name);
    }
    counts.push_back(static_cast<int>(
        gradient_buckets(held, frozen, group.mesh.size(Axis::kTp), most_bucket_elements(spec, group)).size()));
  }
  return counts;
}

}  // namespace troupe
