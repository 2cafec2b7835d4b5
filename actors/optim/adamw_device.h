#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "actors/optim/adamw_kernel.h"
#include "actors/optim/flat_segments.h"

/// AdamW on flat buffers of a GPU, on the current stream; the arithmetic of adamw_kernel.h, gradients untouched. In a
/// build without CUDA it throws: no tensor there lies on a GPU.
namespace troupe::optim {

struct AdamwTensors {
  at::Tensor weights;              // [n] fp32 or bf16
  at::Tensor master;               // [n] fp32, or undefined
  at::Tensor gradients;            // [n] fp32; bf16 where all is bf16
  at::Tensor exp_avg, exp_avg_sq;  // [n] like the gradients
};

void adamw_on_device(const AdamwTensors& tensors, const std::vector<ElementRange>& ranges,
                     const AdamwScalars& with_decay, const AdamwScalars& without_decay);

}  // namespace troupe::optim
