#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "actors/optim/adamw_gpu_kernel.h"

namespace troupe::optim {
namespace {

constexpr int kThreads = 256;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void narrow(float& to, float x) { to = x; }
__device__ inline void narrow(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }

template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T values[N];
};

/// W weights, M what is updated (the master where there is one), S gradients and moments; N neighbouring elements a thread.
template <typename W, typename M, typename S, int N>
__global__ void __launch_bounds__(kThreads) adamw(W* weight, M* master, const S* gradient, S* exp_avg, S* exp_avg_sq, int64_t packs, const AdamwScalars s) {
  for (int64_t p = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; p < packs; p += static_cast<int64_t>(gridDim.x) * kThreads) {
    auto w = reinterpret_cast<Pack<M, N>*>(master)[p];
    const auto g = reinterpret_cast<const Pack<S, N>*>(gradient)[p];
    auto m = reinterpret_cast<Pack<S, N>*>(exp_avg)[p], v = reinterpret_cast<Pack<S, N>*>(exp_avg_sq)[p];
    Pack<W, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float grad = widen(g.values[i]) * s.gradient_scale;
      const float first = widen(m.values[i]) + (1.0f - s.beta1) * (grad - widen(m.values[i]));
      const float second = widen(v.values[i]) * s.beta2 + (1.0f - s.beta2) * grad * grad;
      const float updated = widen(w.values[i]) * s.decay - s.step_size * (first / (sqrtf(second) / s.root_correction + s.eps));
      narrow(m.values[i], first);
      narrow(v.values[i], second);
      narrow(w.values[i], updated);
      narrow(out.values[i], updated);
    }
    reinterpret_cast<Pack<S, N>*>(exp_avg)[p] = m;
    reinterpret_cast<Pack<S, N>*>(exp_avg_sq)[p] = v;
    reinterpret_cast<Pack<M, N>*>(master)[p] = w;
    if (static_cast<const void*>(weight) != static_cast<const void*>(master)) reinterpret_cast<Pack<W, N>*>(weight)[p] = out;
  }
}

bool aligned(const AdamwArrays& a) {
  const auto bits = reinterpret_cast<uintptr_t>(a.weight) | reinterpret_cast<uintptr_t>(a.master) | reinterpret_cast<uintptr_t>(a.gradient) |
                    reinterpret_cast<uintptr_t>(a.exp_avg) | reinterpret_cast<uintptr_t>(a.exp_avg_sq);
  return bits % 16 == 0;
}

/// All whole packs at once, the rest one by one.
template <typename W, typename M, typename S, int N>
const char* run(const AdamwArrays& a, int64_t n, const AdamwScalars& s, cudaStream_t stream) {
  auto *weight = static_cast<W*>(a.weight);
  auto *master = a.master != nullptr ? reinterpret_cast<M*>(a.master) : static_cast<M*>(a.weight);
  const auto* gradient = static_cast<const S*>(a.gradient);
  auto *m = static_cast<S*>(a.exp_avg), *v = static_cast<S*>(a.exp_avg_sq);
  const auto blocks = [](int64_t work) { return static_cast<unsigned>(work / kThreads + 1 < 16384 ? work / kThreads + 1 : 16384); };
  const int64_t packs = aligned(a) ? n / N : 0, done = packs * N;
  if (packs > 0) adamw<W, M, S, N><<<blocks(packs), kThreads, 0, stream>>>(weight, master, gradient, m, v, packs, s);
  if (done < n) adamw<W, M, S, 1><<<blocks(n - done), kThreads, 0, stream>>>(weight + done, master + done, gradient + done, m + done, v + done, n - done, s);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace

const char* launch_adamw(AdamwKind kind, const AdamwArrays& a, int64_t n, const AdamwScalars& s, CUstream_st* stream) {
  switch (kind) {
    case AdamwKind::kFp32: return run<float, float, float, 4>(a, n, s, stream);
    case AdamwKind::kMasterBf16: return run<__nv_bfloat16, float, float, 4>(a, n, s, stream);
    default: return run<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, 8>(a, n, s, stream);
  }
}

}  // namespace troupe::optim
