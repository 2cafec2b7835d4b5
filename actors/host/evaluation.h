#pragma once

#include <nlohmann/json.hpp>

#include "actors/host/executor.h"

/// Evaluation over the held-out samples: loss, answer-token accuracy and exact answers.
namespace troupe {

struct EvaluationOptions {
  size_t show = 0;              // answers to collect
  bool shuffle_images = false;  // look at another record's image of the same size instead (does the model look at all?)
};

struct EvaluationResult {
  StepSums sums;
  std::vector<ShownAnswer> shown;  // of this host's text lane (tp rank 0)
  int64_t images = 0, images_replaced = 0;
  /// {"eval_loss", "eval_accuracy", "eval_exact", "eval_samples", "eval_tokens"}
  nlohmann::ordered_json to_json() const;
};

/// Every host of the job calls this at the same point. `step` labels the batches.
Result<EvaluationResult> evaluate(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors,
                                  Executor& executor, int64_t step, const EvaluationOptions& options);

}  // namespace troupe
