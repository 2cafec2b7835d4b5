#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

/// How a differentiable function with flat-buffer weights gets a place in the graph.
namespace troupe {

/// Weights are no inputs of the graph, so a function whose activations need no gradient would never see a backward
/// pass. This empty tensor is passed as one more input, and requires a gradient exactly when a weight does; its own
/// gradient stays undefined.
inline at::Tensor weight_anchor(bool any_weight_trained) {
  at::Tensor anchor = at::empty({0});
  if (any_weight_trained && c10::GradMode::is_enabled()) anchor.set_requires_grad(true);
  return anchor;
}

}  // namespace troupe
