// Compiled once for each instruction set; TROUPE_ROW_LOOPS is the name of the table that this compilation defines.
#include "actors/kernels/row_loops.h"

#include <bit>
#include <cmath>

namespace troupe {
namespace {

/// bf16 as bits; rounds to nearest, ties to even.
struct Bf16 {
  uint16_t bits;
};
inline float load(float x) { return x; }
inline float load(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline void store(float& to, float x) { to = x; }
inline void store(Bf16& to, float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  // Rounding must not carry a NaN's payload into infinity.
  to.bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
}

/// e^x to 2 units in the last place, in plain arithmetic so that the compiler vectorises it. Clamped: no input
/// overflows to infinity or below zero.
inline float exponential(float x) {
  x = x > 88.0f ? 88.0f : x;
  x = x < -87.0f ? -87.0f : x;
  // The magic constant rounds to the nearest integer in its low mantissa bits.
  const float shifted = x * 1.44269504088896341f + 12582912.0f;
  const int32_t n = std::bit_cast<int32_t>(shifted) - 0x4b400000;
  const float whole = static_cast<float>(n);
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((n + 127) << 23);
}
inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

template <typename T>
void rms_forward(const RmsForward& a) {
  const int64_t width = a.width;
  const T* weight = static_cast<const T*>(a.weight);
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* x = static_cast<const T*>(a.x) + row * width;
    if (a.residual) {
      const T* residual = static_cast<const T*>(a.residual) + row * width;
      T* sum = static_cast<T*>(a.sum) + row * width;
      for (int64_t i = 0; i < width; ++i) store(sum[i], load(x[i]) + load(residual[i]));
      x = sum;
    }
    float squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += load(x[i]) * load(x[i]);
    const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(width) + a.eps);
    a.inverse[row] = inverse;
    T* y = static_cast<T*>(a.y) + row * width;
    for (int64_t i = 0; i < width; ++i) store(y[i], load(x[i]) * inverse * load(weight[i]));
  }
}

template <typename T>
void rms_backward(const RmsBackward& a) {
  const int64_t width = a.width;
  const T* weight = static_cast<const T*>(a.weight);
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* x = static_cast<const T*>(a.x) + row * width;
    const T* grad_y = static_cast<const T*>(a.grad_y) + row * width;
    const float inverse = a.inverse[row];
    if (a.weight_gradient) {
      for (int64_t i = 0; i < width; ++i) a.weight_gradient[i] += load(grad_y[i]) * load(x[i]) * inverse;
    }
    if (!a.grad_x) continue;
    float dot = 0;
    for (int64_t i = 0; i < width; ++i) dot += load(grad_y[i]) * load(weight[i]) * load(x[i]);
    const float slope = dot * inverse * inverse * inverse / static_cast<float>(width);
    T* grad_x = static_cast<T*>(a.grad_x) + row * width;
    if (a.grad_sum) {
      const T* grad_sum = static_cast<const T*>(a.grad_sum) + row * width;
      for (int64_t i = 0; i < width; ++i) {
        store(grad_x[i], load(grad_sum[i]) + load(grad_y[i]) * load(weight[i]) * inverse - load(x[i]) * slope);
      }
    } else {
      for (int64_t i = 0; i < width; ++i)
        store(grad_x[i], load(grad_y[i]) * load(weight[i]) * inverse - load(x[i]) * slope);
    }
  }
}

template <typename T>
void swiglu_forward(const Swiglu& a) {
  const int64_t width = a.width;
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* gate = static_cast<const T*>(a.gate_up) + row * 2 * width;
    const T* up = gate + width;
    T* y = static_cast<T*>(a.y) + row * width;
    for (int64_t i = 0; i < width; ++i) {
      const float g = load(gate[i]);
      store(y[i], g * sigmoid(g) * load(up[i]));
    }
  }
}

template <typename T>
void swiglu_backward(const Swiglu& a) {
  const int64_t width = a.width;
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* gate = static_cast<const T*>(a.gate_up) + row * 2 * width;
    const T* up = gate + width;
    const T* grad_y = static_cast<const T*>(a.grad_y) + row * width;
    T* grad_gate = static_cast<T*>(a.grad_gate_up) + row * 2 * width;
    T* grad_up = grad_gate + width;
    for (int64_t i = 0; i < width; ++i) {
      const float g = load(gate[i]), s = sigmoid(g), d = load(grad_y[i]);
      store(grad_up[i], d * g * s);
      store(grad_gate[i], d * load(up[i]) * s * (1.0f + g * (1.0f - s)));
    }
  }
}

/// Rotates one head by the angle given; the inverse rotation is its transpose, which is what the backward pass needs.
template <typename T>
void rotate(const T* __restrict__ from, T* __restrict__ to, const float* cosine, const float* sine, int64_t d,
            bool inverse) {
  const int64_t half = d / 2;
  if (!inverse) {
    for (int64_t i = 0; i < half; ++i) {
      const float a = load(from[i]), b = load(from[i + half]);
      store(to[i], a * cosine[i] - b * sine[i]);
      store(to[i + half], b * cosine[i + half] + a * sine[i + half]);
    }
  } else {
    for (int64_t i = 0; i < half; ++i) {
      const float a = load(from[i]), b = load(from[i + half]);
      store(to[i], a * cosine[i] + b * sine[i + half]);
      store(to[i + half], b * cosine[i + half] - a * sine[i]);
    }
  }
}

template <typename T>
void rope_split(const RopeSplit& a) {
  const int64_t d = a.head_dim, packed_width = (a.heads + 2 * a.kv_heads) * d, kv_width = a.kv_heads * d;
  for (int64_t row = 0; row < a.rows; ++row) {
    T* packed = static_cast<T*>(a.packed) + row * packed_width;
    T* q = static_cast<T*>(a.q) + row * a.heads * d;
    T* k = static_cast<T*>(a.k) + row * kv_width;
    T* v = static_cast<T*>(a.v) + row * kv_width;
    const float *cosine = a.cosine + row * d, *sine = a.sine + row * d;
    for (int64_t h = 0; h < a.heads + a.kv_heads; ++h) {
      T* split = h < a.heads ? q + h * d : k + (h - a.heads) * d;
      if (a.inverse) {
        rotate(split, packed + h * d, cosine, sine, d, true);
      } else {
        rotate(packed + h * d, split, cosine, sine, d, false);
      }
    }
    T* values = packed + (a.heads + a.kv_heads) * d;
    for (int64_t i = 0; i < kv_width; ++i) (a.inverse ? values[i] : v[i]) = a.inverse ? v[i] : values[i];
  }
}

template <typename T>
void add_column_sums(const void* x, int64_t rows, int64_t width, float* sums) {
  const T* row = static_cast<const T*>(x);
  for (int64_t r = 0; r < rows; ++r, row += width) {
    for (int64_t i = 0; i < width; ++i) sums[i] += load(row[i]);
  }
}

}  // namespace

// clang-format off
extern const RowLoops TROUPE_ROW_LOOPS;
const RowLoops TROUPE_ROW_LOOPS = {
  [](RowType t, const RmsForward& a) { t == RowType::kFp32 ? rms_forward<float>(a) : rms_forward<Bf16>(a); },
  [](RowType t, const RmsBackward& a) { t == RowType::kFp32 ? rms_backward<float>(a) : rms_backward<Bf16>(a); },
  [](RowType t, const Swiglu& a) { t == RowType::kFp32 ? swiglu_forward<float>(a) : swiglu_forward<Bf16>(a); },
  [](RowType t, const Swiglu& a) { t == RowType::kFp32 ? swiglu_backward<float>(a) : swiglu_backward<Bf16>(a); },
  [](RowType t, const RopeSplit& a) { t == RowType::kFp32 ? rope_split<float>(a) : rope_split<Bf16>(a); },
  [](RowType t, const void* x, int64_t rows, int64_t width, float* sums) {
    t == RowType::kFp32 ? add_column_sums<float>(x, rows, width, sums) : add_column_sums<Bf16>(x, rows, width, sums);
  },
};
// clang-format on

}  // namespace troupe
