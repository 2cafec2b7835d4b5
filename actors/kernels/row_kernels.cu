#include <cstdint>

#include "actors/kernels/device_pack.cuh"
#include "actors/kernels/row_kernels.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostChunks = 8;  // 16-byte pieces of a row that one thread of a norm holds

/// Elements in 16 bytes.
template <typename T>
constexpr int kWide = 16 / sizeof(T);

/// The sum over the block's threads, the same on each; the order is fixed.
template <typename V>
__device__ V block_sum(V x) {
  __shared__ V partial[kThreads / 32];
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  __syncthreads();  // an earlier sum has been read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  V sum = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += partial[warp];
  return sum;
}

/// One block a row; a thread holds pieces threadIdx.x, threadIdx.x + kThreads, ... of it in registers.
template <typename T, int Chunks>
__global__ void __launch_bounds__(kThreads) rms_forward_kernel(const RmsForward a) {
  constexpr int N = kWide<T>;
  const int64_t row = blockIdx.x, offset = row * a.width;
  const T *x = static_cast<const T*>(a.x) + offset, *weight = static_cast<const T*>(a.weight);
  const T* residual = a.residual ? static_cast<const T*>(a.residual) + offset : nullptr;
  Pack<T, N> held[Chunks];
  float squares = 0;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int64_t at = (c * kThreads + threadIdx.x) * N;
    if (at >= a.width) continue;
    held[c] = load<N>(x + at);
    if (residual) {
      const Pack<T, N> other = load<N>(residual + at);
#pragma unroll
      for (int i = 0; i < N; ++i) narrow(held[c].values[i], widen(held[c].values[i]) + widen(other.values[i]));
      store<N>(static_cast<T*>(a.sum) + offset + at, held[c]);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) squares += widen(held[c].values[i]) * widen(held[c].values[i]);
  }
  const float inverse = rsqrtf(block_sum(squares) / static_cast<float>(a.width) + a.eps);
  if (threadIdx.x == 0) a.inverse[row] = inverse;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int64_t at = (c * kThreads + threadIdx.x) * N;
    if (at >= a.width) continue;
    const Pack<T, N> w = load<N>(weight + at);
#pragma unroll
    for (int i = 0; i < N; ++i) narrow(held[c].values[i], widen(held[c].values[i]) * inverse * widen(w.values[i]));
    store<N>(static_cast<T*>(a.y) + offset + at, held[c]);
  }
}

/// Each block takes every gridDim.x-th row, so that its threads can keep their columns' weight gradients in registers.
template <typename T, int Chunks>
__global__ void __launch_bounds__(kThreads) rms_backward_kernel(const RmsBackward a) {
  constexpr int N = kWide<T>;
  float sums[Chunks][N] = {};
  const T* weight = static_cast<const T*>(a.weight);
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const int64_t offset = row * a.width;
    const T *x = static_cast<const T*>(a.x) + offset, *grad_y = static_cast<const T*>(a.grad_y) + offset;
    const float inverse = a.inverse[row];
    Pack<T, N> held_x[Chunks], held_grad[Chunks];
    float dot = 0;
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const int64_t at = (c * kThreads + threadIdx.x) * N;
      if (at >= a.width) continue;
      held_x[c] = load<N>(x + at);
      held_grad[c] = load<N>(grad_y + at);
      const Pack<T, N> w = load<N>(weight + at);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float product = widen(held_grad[c].values[i]) * widen(held_x[c].values[i]);
        sums[c][i] += product * inverse;
        dot += product * widen(w.values[i]);
      }
    }
    if (!a.grad_x) continue;
    const float slope = block_sum(dot) * inverse * inverse * inverse / static_cast<float>(a.width);
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const int64_t at = (c * kThreads + threadIdx.x) * N;
      if (at >= a.width) continue;
      const Pack<T, N> w = load<N>(weight + at);
      Pack<T, N> extra;
      if (a.grad_sum) extra = load<N>(static_cast<const T*>(a.grad_sum) + offset + at);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float grad = widen(held_grad[c].values[i]) * widen(w.values[i]) * inverse - widen(held_x[c].values[i]) * slope;
        if (a.grad_sum) grad += widen(extra.values[i]);
        narrow(held_grad[c].values[i], grad);
      }
      store<N>(static_cast<T*>(a.grad_x) + offset + at, held_grad[c]);
    }
  }
  if (!a.weight_gradient) return;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int64_t at = (c * kThreads + threadIdx.x) * N;
    if (at >= a.width) continue;
    for (int i = 0; i < N; ++i) a.weight_gradient[blockIdx.x * a.width + at + i] = sums[c][i];
  }
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) swiglu_forward_kernel(const Swiglu a) {
  const int64_t pieces = a.width / N, all = a.rows * pieces;
  for (int64_t p = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; p < all;
       p += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t row = p / pieces, at = p % pieces * N;
    const T* gate = static_cast<const T*>(a.gate_up) + row * 2 * a.width + at;
    const Pack<T, N> g = load<N>(gate), u = load<N>(gate + a.width);
    Pack<T, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i)
      narrow(y.values[i], widen(g.values[i]) * sigmoid(widen(g.values[i])) * widen(u.values[i]));
    store<N>(static_cast<T*>(a.y) + row * a.width + at, y);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads) swiglu_backward_kernel(const Swiglu a) {
  const int64_t pieces = a.width / N, all = a.rows * pieces;
  for (int64_t p = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; p < all;
       p += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t row = p / pieces, at = p % pieces * N, gate_at = row * 2 * a.width + at;
    const T* gate = static_cast<const T*>(a.gate_up) + gate_at;
    const Pack<T, N> g = load<N>(gate), u = load<N>(gate + a.width),
                     d = load<N>(static_cast<const T*>(a.grad_y) + row * a.width + at);
    Pack<T, N> grad_gate, grad_up;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float x = widen(g.values[i]), s = sigmoid(x), grad = widen(d.values[i]);
      narrow(grad_up.values[i], grad * x * s);
      narrow(grad_gate.values[i], grad * widen(u.values[i]) * s * (1.0f + x * (1.0f - s)));
    }
    T* to = static_cast<T*>(a.grad_gate_up) + gate_at;
    store<N>(to, grad_gate);
    store<N>(to + a.width, grad_up);
  }
}

/// Four neighbouring pairs (i, i + d / 2) of one head a thread; value heads are copied.
template <typename T>
__global__ void __launch_bounds__(kThreads) rope_split_kernel(const RopeSplit a) {
  constexpr int N = 4;
  const int64_t d = a.head_dim, half = d / 2, pieces = half / N, heads = a.heads + 2 * a.kv_heads,
                all = a.rows * heads * pieces;
  for (int64_t p = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; p < all;
       p += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t piece = p % pieces * N, head = p / pieces % heads, row = p / pieces / heads;
    T* packed = static_cast<T*>(a.packed) + (row * heads + head) * d + piece;
    T* split;
    if (head < a.heads) {
      split = static_cast<T*>(a.q) + (row * a.heads + head) * d + piece;
    } else if (head < a.heads + a.kv_heads) {
      split = static_cast<T*>(a.k) + (row * a.kv_heads + head - a.heads) * d + piece;
    } else {
      split = static_cast<T*>(a.v) + (row * a.kv_heads + head - a.heads - a.kv_heads) * d + piece;
    }
    const T* from = a.inverse ? split : packed;
    T* to = a.inverse ? packed : split;
    Pack<T, N> low = load<N>(from), high = load<N>(from + half);
    if (head < a.heads + a.kv_heads) {
      const float *cosine = a.cosine + row * d + piece, *sine = a.sine + row * d + piece;
      const Pack<float, N> cos_low = load<N>(cosine), cos_high = load<N>(cosine + half), sin_low = load<N>(sine),
                           sin_high = load<N>(sine + half);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float x = widen(low.values[i]), y = widen(high.values[i]);
        if (a.inverse) {
          narrow(low.values[i], x * cos_low.values[i] + y * sin_high.values[i]);
          narrow(high.values[i], y * cos_high.values[i] - x * sin_low.values[i]);
        } else {
          narrow(low.values[i], x * cos_low.values[i] - y * sin_low.values[i]);
          narrow(high.values[i], y * cos_high.values[i] + x * sin_high.values[i]);
        }
      }
    }
    store<N>(to, low);
    store<N>(to + half, high);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) squares_kernel(const T* x, int64_t n, double* partial) {
  constexpr int N = kWide<T>;
  double sum = 0, non_finite = 0;
  const int64_t whole = n / N, stride = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t first = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  for (int64_t p = first; p < whole; p += stride) {
    const Pack<T, N> pack = load<N>(x + p * N);
    float part = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) part += widen(pack.values[i]) * widen(pack.values[i]);
    sum += part;
    if (isfinite(part)) continue;
    for (int i = 0; i < N; ++i) non_finite += isfinite(widen(pack.values[i])) ? 0 : 1;
  }
  for (int64_t i = whole * N + first; i < n; i += stride) {
    sum += widen(x[i]) * widen(x[i]);
    non_finite += isfinite(widen(x[i])) ? 0 : 1;
  }
  sum = block_sum(sum);
  non_finite = block_sum(non_finite);
  if (threadIdx.x != 0) return;
  partial[2 * blockIdx.x] = sum;
  partial[2 * blockIdx.x + 1] = non_finite;
}

/// Blocks for `pieces` threads' worth of work: enough to fill any GPU, each then striding.
unsigned blocks_for(int64_t pieces) {
  const int64_t blocks = (pieces + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 8192 ? 8192 : blocks);
}

int64_t chunks_of(RowType type, int64_t width) {
  const int64_t chunk = kThreads * elements_of_16_bytes(type);
  return (width + chunk - 1) / chunk;
}

template <typename T>
const char* launch_rms_forward(const RmsForward& a, int64_t chunks, Stream stream) {
  const auto blocks = static_cast<unsigned>(a.rows);
  if (chunks <= 1)
    rms_forward_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(a);
  else if (chunks <= 2)
    rms_forward_kernel<T, 2><<<blocks, kThreads, 0, stream>>>(a);
  else if (chunks <= 4)
    rms_forward_kernel<T, 4><<<blocks, kThreads, 0, stream>>>(a);
  else
    rms_forward_kernel<T, kMostChunks><<<blocks, kThreads, 0, stream>>>(a);
  return launch_refused();
}

template <typename T>
const char* launch_rms_backward(const RmsBackward& a, int64_t chunks, Stream stream) {
  const auto blocks = static_cast<unsigned>(norm_backward_blocks(a.rows));
  if (chunks <= 1)
    rms_backward_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(a);
  else if (chunks <= 2)
    rms_backward_kernel<T, 2><<<blocks, kThreads, 0, stream>>>(a);
  else if (chunks <= 4)
    rms_backward_kernel<T, 4><<<blocks, kThreads, 0, stream>>>(a);
  else
    rms_backward_kernel<T, kMostChunks><<<blocks, kThreads, 0, stream>>>(a);
  return launch_refused();
}

}  // namespace

bool norm_width_fits(RowType type, int64_t width) {
  return width % elements_of_16_bytes(type) == 0 && chunks_of(type, width) <= kMostChunks;
}

int64_t norm_backward_blocks(int64_t rows) { return rows < 1024 ? rows : 1024; }

const char* rms_forward(RowType type, const RmsForward& a, Stream stream) {
  if (a.rows == 0) return nullptr;
  const int64_t chunks = chunks_of(type, a.width);
  return type == RowType::kFp32 ? launch_rms_forward<float>(a, chunks, stream)
                                : launch_rms_forward<__nv_bfloat16>(a, chunks, stream);
}

const char* rms_backward(RowType type, const RmsBackward& a, Stream stream) {
  if (a.rows == 0) return nullptr;
  const int64_t chunks = chunks_of(type, a.width);
  return type == RowType::kFp32 ? launch_rms_backward<float>(a, chunks, stream)
                                : launch_rms_backward<__nv_bfloat16>(a, chunks, stream);
}

const char* swiglu_forward(RowType type, const Swiglu& a, Stream stream) {
  if (a.rows == 0) return nullptr;
  const bool wide = type == RowType::kBf16 && a.width % 8 == 0;
  const unsigned blocks = blocks_for(a.rows * a.width / (wide ? 8 : 4));
  if (type == RowType::kFp32)
    swiglu_forward_kernel<float, 4><<<blocks, kThreads, 0, stream>>>(a);
  else if (wide)
    swiglu_forward_kernel<__nv_bfloat16, 8><<<blocks, kThreads, 0, stream>>>(a);
  else
    swiglu_forward_kernel<__nv_bfloat16, 4><<<blocks, kThreads, 0, stream>>>(a);
  return launch_refused();
}

const char* swiglu_backward(RowType type, const Swiglu& a, Stream stream) {
  if (a.rows == 0) return nullptr;
  const bool wide = type == RowType::kBf16 && a.width % 8 == 0;
  const unsigned blocks = blocks_for(a.rows * a.width / (wide ? 8 : 4));
  if (type == RowType::kFp32)
    swiglu_backward_kernel<float, 4><<<blocks, kThreads, 0, stream>>>(a);
  else if (wide)
    swiglu_backward_kernel<__nv_bfloat16, 8><<<blocks, kThreads, 0, stream>>>(a);
  else
    swiglu_backward_kernel<__nv_bfloat16, 4><<<blocks, kThreads, 0, stream>>>(a);
  return launch_refused();
}

const char* rope_split(RowType type, const RopeSplit& a, Stream stream) {
  if (a.rows == 0) return nullptr;
  const unsigned blocks = blocks_for(a.rows * (a.heads + 2 * a.kv_heads) * a.head_dim / 8);
  if (type == RowType::kFp32)
    rope_split_kernel<float><<<blocks, kThreads, 0, stream>>>(a);
  else
    rope_split_kernel<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(a);
  return launch_refused();
}

int64_t square_blocks(int64_t n) { return blocks_for(n / 32); }

const char* squares(RowType type, const void* x, int64_t n, double* partial, Stream stream) {
  const auto blocks = static_cast<unsigned>(square_blocks(n));
  if (type == RowType::kFp32)
    squares_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const float*>(x), n, partial);
  else
    squares_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const __nv_bfloat16*>(x), n, partial);
  return launch_refused();
}

}  // namespace troupe::cuda
