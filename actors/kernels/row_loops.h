#pragma once

#include <cstdint>

/// The CPU inner loops of this room on raw rows, compiled once for each instruction set; no LibTorch here, so that they
/// build fast. Each works on `rows` consecutive rows and is single-threaded: callers cut the rows and run pieces side
/// by side. Element types: fp32, and bf16 as its 16 bits; arithmetic is fp32 in both. NaN and infinity pass through.
namespace troupe {

enum class RowType : uint8_t { kFp32, kBf16 };

struct RmsForward {
  const void* x;
  const void* residual;  // or null
  const void* weight;    // [H]
  void* sum;             // x + residual; null without residual
  void* y;
  float* inverse;  // [rows] 1 / sqrt(mean + eps)
  int64_t rows, width;
  float eps;
};

struct RmsBackward {
  const void* grad_y;
  const void* grad_sum;  // gradient that the sum got from elsewhere, or null
  const void* x;         // what was normalised
  const void* weight;
  const float* inverse;
  void* grad_x;            // or null
  float* weight_gradient;  // [H], added to; or null
  int64_t rows, width;
};

/// gate_up [rows, 2 * width].
struct Swiglu {
  const void* gate_up;
  const void* grad_y;  // backward
  void* y;             // forward
  void* grad_gate_up;  // backward
  int64_t rows, width;
};

/// packed [rows, (heads + 2 kv) d]; q [rows, heads d], k and v [rows, kv d]. Backward (`inverse`) reads q, k, v and
/// writes packed.
struct RopeSplit {
  void* packed;
  void *q, *k, *v;
  const float *cosine, *sine;  // [rows, d]
  int64_t rows, heads, kv_heads, head_dim;
  bool inverse;
};

/// One instruction set's loops.
struct RowLoops {
  void (*rms_forward)(RowType, const RmsForward&);
  void (*rms_backward)(RowType, const RmsBackward&);
  void (*swiglu_forward)(RowType, const Swiglu&);
  void (*swiglu_backward)(RowType, const Swiglu&);
  void (*rope_split)(RowType, const RopeSplit&);
  /// sums [width] += the sum of the rows of x [rows, width].
  void (*add_column_sums)(RowType, const void* x, int64_t rows, int64_t width, float* sums);
};

/// The best loops for this processor.
const RowLoops& row_loops();

}  // namespace troupe
