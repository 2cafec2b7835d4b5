#include "actors/optim/adamw_kernel.h"

#include <bit>
#include <cmath>

namespace troupe::optim {
namespace {

[[gnu::always_inline]] inline float widen(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

[[gnu::always_inline]] inline uint16_t narrow(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

/// One element. The order of operations is torch.optim.AdamW's, so that both round alike.
[[gnu::always_inline]] inline void step_element(float& weight, float gradient, float& exp_avg, float& exp_avg_sq,
                                                const AdamwScalars& s) {
  const float g = gradient * s.gradient_scale;
  exp_avg += (1.0f - s.beta1) * (g - exp_avg);
  exp_avg_sq = exp_avg_sq * s.beta2 + (1.0f - s.beta2) * g * g;
  const float denominator = std::sqrt(exp_avg_sq) / s.root_correction + s.eps;
  weight = weight * s.decay - s.step_size * (exp_avg / denominator);
}

[[gnu::always_inline]] inline void loop_fp32(float* __restrict weight, const float* __restrict gradient,
                                             float* __restrict exp_avg, float* __restrict exp_avg_sq, int64_t n,
                                             const AdamwScalars s) {
  for (int64_t i = 0; i < n; ++i) step_element(weight[i], gradient[i], exp_avg[i], exp_avg_sq[i], s);
}

[[gnu::always_inline]] inline void loop_master(uint16_t* __restrict weight, float* __restrict master,
                                               const float* __restrict gradient, float* __restrict exp_avg,
                                               float* __restrict exp_avg_sq, int64_t n, const AdamwScalars s) {
  for (int64_t i = 0; i < n; ++i) {
    step_element(master[i], gradient[i], exp_avg[i], exp_avg_sq[i], s);
    weight[i] = narrow(master[i]);
  }
}

[[gnu::always_inline]] inline void loop_bf16(uint16_t* __restrict weight, const uint16_t* __restrict gradient,
                                             uint16_t* __restrict exp_avg, uint16_t* __restrict exp_avg_sq, int64_t n,
                                             const AdamwScalars s) {
  for (int64_t i = 0; i < n; ++i) {
    float w = widen(weight[i]), m = widen(exp_avg[i]), v = widen(exp_avg_sq[i]);
    step_element(w, widen(gradient[i]), m, v, s);
    weight[i] = narrow(w);
    exp_avg[i] = narrow(m);
    exp_avg_sq[i] = narrow(v);
  }
}

#if defined(__x86_64__)
// The same loops for wider registers. Without fused multiply-add, so that every x86 machine gets the same numbers.
[[gnu::target("avx2")]] void avx2_fp32(float* w, const float* g, float* m, float* v, int64_t n, const AdamwScalars& s) {
  loop_fp32(w, g, m, v, n, s);
}
[[gnu::target("avx2")]] void avx2_master(uint16_t* w, float* master, const float* g, float* m, float* v, int64_t n,
                                         const AdamwScalars& s) {
  loop_master(w, master, g, m, v, n, s);
}
[[gnu::target("avx2")]] void avx2_bf16(uint16_t* w, const uint16_t* g, uint16_t* m, uint16_t* v, int64_t n,
                                       const AdamwScalars& s) {
  loop_bf16(w, g, m, v, n, s);
}
const bool kWide = __builtin_cpu_supports("avx2");
#else
void avx2_fp32(float*, const float*, float*, float*, int64_t, const AdamwScalars&) {}
void avx2_master(uint16_t*, float*, const float*, float*, float*, int64_t, const AdamwScalars&) {}
void avx2_bf16(uint16_t*, const uint16_t*, uint16_t*, uint16_t*, int64_t, const AdamwScalars&) {}
constexpr bool kWide = false;
#endif

}  // namespace

AdamwScalars adamw_scalars(double lr, double weight_decay, double beta1, double beta2, double eps,
                           double gradient_scale, int64_t step) {
  AdamwScalars s;
  s.decay = static_cast<float>(1.0 - lr * weight_decay);
  s.beta1 = static_cast<float>(beta1);
  s.beta2 = static_cast<float>(beta2);
  s.step_size = static_cast<float>(lr / (1.0 - std::pow(beta1, static_cast<double>(step))));
  s.root_correction = static_cast<float>(std::sqrt(1.0 - std::pow(beta2, static_cast<double>(step))));
  s.eps = static_cast<float>(eps);
  s.gradient_scale = static_cast<float>(gradient_scale);
  return s;
}

void adamw_fp32(float* weight, const float* gradient, float* exp_avg, float* exp_avg_sq, int64_t n,
                const AdamwScalars& s) {
  if (kWide) return avx2_fp32(weight, gradient, exp_avg, exp_avg_sq, n, s);
  loop_fp32(weight, gradient, exp_avg, exp_avg_sq, n, s);
}

void adamw_master_bf16(uint16_t* weight, float* master, const float* gradient, float* exp_avg, float* exp_avg_sq,
                       int64_t n, const AdamwScalars& s) {
  if (kWide) return avx2_master(weight, master, gradient, exp_avg, exp_avg_sq, n, s);
  loop_master(weight, master, gradient, exp_avg, exp_avg_sq, n, s);
}

void adamw_bf16(uint16_t* weight, const uint16_t* gradient, uint16_t* exp_avg, uint16_t* exp_avg_sq, int64_t n,
                const AdamwScalars& s) {
  if (kWide) return avx2_bf16(weight, gradient, exp_avg, exp_avg_sq, n, s);
  loop_bf16(weight, gradient, exp_avg, exp_avg_sq, n, s);
}

}  // namespace troupe::optim
