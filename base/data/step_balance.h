#pragma once

#include <cstdint>

#include "base/data/batch_plan.h"
#include "base/mesh/mesh.h"

/// How evenly a step's work lies over ranks and packs: what metrics.jsonl and `troupe check` report. Pure; of the plan
/// alone.
namespace troupe {

struct StepBalance {
  /// Tokens of the text lane with most, over the mean of all; 1 when no lane has any.
  double text_imbalance = 1;
  /// Cost (image_cost) of the vision rank with most, over the mean of all. Within a lane full attention is shared out
  /// by heads, all else by the patches that a rank holds. 1 when the step has no image.
  double vision_imbalance = 1;
  /// Sequences of text units: samples, or packs.
  int64_t sequences = 0;
  /// Tokens over sequences x pack_tokens; 0 without packing.
  double pack_fill = 0;
};

/// `vision`: mesh of the encoder's group (dp x sp). Cost: a look at each window of the step.
StepBalance step_balance(const StepPlan& plan, const SampleIndex& index, const VisionConfig& config, const Mesh& vision,
                         int64_t pack_tokens);

}  // namespace troupe
