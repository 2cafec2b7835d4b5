#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "actors/optim/flat_segments.h"
#include "actors/optim/optimizer.h"

namespace troupe::optim {

/// Sums what one rank counts of a flat gradient buffer, piece by piece in the order of memory: the same additions
/// whatever the threads and wherever the buffer is cut. On GPUs it is one synchronisation, in total().
class GradientNorm {
 public:
  /// `ranges` of `gradients`, fp32 or bf16, all calls on one device.
  void add(const at::Tensor& gradients, const std::vector<ElementRange>& ranges);
  NormPart total() const;

 private:
  NormPart sum_;
  at::Tensor on_device_;  // [2] fp64: squared, non-finite
};

}  // namespace troupe::optim
