#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/host/executor.h"
#include "actors/host/step_clock.h"

/// What a step reports: the line of metrics.jsonl, and the part that every host knows of itself.
namespace troupe {

/// Which parts of the model get gradients.
struct TrainedParts {
  bool vision = true, merger = true, text = true;
};
TrainedParts trained_parts(const JobSpec& spec);

/// Floating-point operations of a training step's matrix products and attention, forward and backward (three times the
/// forward where all is trained), by the shapes of the plan. A frozen matrix costs no gradient of its own, and a part
/// with nothing trained before it none of its input.
double step_flops(const ModelConfig& config, const TrainedParts& trained, const StepPlan& plan,
                  const SampleIndex& index);

/// Everything but the keys that are merged from all hosts.
/// `attempt`: 1, or higher when the step was run before and rolled back.
std::string step_line(const JobContext& job, const StepPlan& plan, const StepOutcome& outcome, const StepTime& time,
                      int64_t skipped_total, int attempt);

/// The loss of a step as the run folder's metrics.jsonl has it; none when no line gives a finite one.
std::optional<double> loss_of_step(const std::string& run_folder, int64_t step);

/// The attempt that steps after `step` make: one more than what RUN/metrics.jsonl already holds of them.
int next_attempt(const std::string& run_folder, int64_t step);

/// {"peak_memory_mib": ..., "activation_peak_mib": {"group/rank": ...}} of this host.
std::string local_line(const JobContext& job, const std::vector<std::unique_ptr<Actor>>& actors,
                       const std::vector<int64_t>& activation_peaks);

}  // namespace troupe
