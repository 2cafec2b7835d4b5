#pragma once

#include <cstdint>

/// The arithmetic of AdamW on plain arrays: one pass over weight, gradient and both moments. No tensors, no threads:
/// callers cut the work. Source: arXiv:1711.05101, algorithm 2, with the decay applied before the step as
/// torch.optim.AdamW does.
namespace troupe::optim {

/// Factors of one update, the same for all elements of a call.
struct AdamwScalars {
  float decay = 1;  // 1 - lr * weight decay
  float beta1 = 0, beta2 = 0;
  float step_size = 0;        // lr / (1 - beta1^step)
  float root_correction = 1;  // sqrt(1 - beta2^step)
  float eps = 0;
  float gradient_scale = 1;  // multiplies the gradient first: the clip factor
};

AdamwScalars adamw_scalars(double lr, double weight_decay, double beta1, double beta2, double eps,
                           double gradient_scale, int64_t step);

/// All in fp32.
void adamw_fp32(float* weight, const float* gradient, float* exp_avg, float* exp_avg_sq, int64_t n,
                const AdamwScalars& s);
/// Updates the fp32 master and rounds it (to nearest, ties to even) into the bf16 weight.
void adamw_master_bf16(uint16_t* weight, float* master, const float* gradient, float* exp_avg, float* exp_avg_sq,
                       int64_t n, const AdamwScalars& s);
/// All in bf16; the arithmetic of an element is in fp32 and rounded once.
void adamw_bf16(uint16_t* weight, const uint16_t* gradient, uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t n,
                const AdamwScalars& s);

}  // namespace troupe::optim
