#include "actors/kernels/device_pack.cuh"
#include "actors/optim/adamw_gpu_kernel.h"

namespace troupe::optim {
namespace {

constexpr int kThreads = 256;

using namespace cuda;  // device_pack.cuh

/// W weights, M what is updated (the master where there is one), S gradients and moments; N neighbouring elements a
/// thread.
template <typename W, typename M, typename S, int N>
__global__ void __launch_bounds__(kThreads)
    adamw(W* weight, M* master, const S* gradient, S* exp_avg, S* exp_avg_sq, int64_t packs, const AdamwScalars s) {
  for (int64_t p = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; p < packs;
       p += static_cast<int64_t>(gridDim.x) * kThreads) {
    auto w = load<N>(master + p * N);
    const auto g = load<N>(gradient + p * N);
    auto m = load<N>(exp_avg + p * N), v = load<N>(exp_avg_sq + p * N);
    Pack<W, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float grad = widen(g.values[i]) * s.gradient_scale;
      const float first = widen(m.values[i]) + (1.0f - s.beta1) * (grad - widen(m.values[i]));
      const float second = widen(v.values[i]) * s.beta2 + (1.0f - s.beta2) * grad * grad;
      const float updated =
          widen(w.values[i]) * s.decay - s.step_size * (first / (sqrtf(second) / s.root_correction + s.eps));
      narrow(m.values[i], first);
      narrow(v.values[i], second);
      narrow(w.values[i], updated);
      narrow(out.values[i], updated);
    }
    store<N>(exp_avg + p * N, m);
    store<N>(exp_avg_sq + p * N, v);
    store<N>(master + p * N, w);
    if (static_cast<const void*>(weight) != static_cast<const void*>(master)) store<N>(weight + p * N, out);
  }
}

bool aligned(const AdamwArrays& a) {
  const auto bits = reinterpret_cast<uintptr_t>(a.weight) | reinterpret_cast<uintptr_t>(a.master) |
                    reinterpret_cast<uintptr_t>(a.gradient) | reinterpret_cast<uintptr_t>(a.exp_avg) |
                    reinterpret_cast<uintptr_t>(a.exp_avg_sq);
  return bits % 16 == 0;
}

/// All whole packs at once, the rest one by one.
template <typename W, typename M, typename S, int N>
const char* run(const AdamwArrays& a, int64_t n, const AdamwScalars& s, cudaStream_t stream) {
  auto* weight = static_cast<W*>(a.weight);
  auto* master = a.master != nullptr ? reinterpret_cast<M*>(a.master) : static_cast<M*>(a.weight);
  const auto* gradient = static_cast<const S*>(a.gradient);
  auto *m = static_cast<S*>(a.exp_avg), *v = static_cast<S*>(a.exp_avg_sq);
  const auto blocks = [](int64_t work) {
    return static_cast<unsigned>(work / kThreads + 1 < 16384 ? work / kThreads + 1 : 16384);
  };
  const int64_t packs = aligned(a) ? n / N : 0, done = packs * N;
  if (packs > 0) adamw<W, M, S, N><<<blocks(packs), kThreads, 0, stream>>>(weight, master, gradient, m, v, packs, s);
  if (done < n)
    adamw<W, M, S, 1><<<blocks(n - done), kThreads, 0, stream>>>(weight + done, master + done, gradient + done,
                                                                 m + done, v + done, n - done, s);
  return launch_refused();
}

}  // namespace

const char* launch_adamw(AdamwKind kind, const AdamwArrays& a, int64_t n, const AdamwScalars& s, CUstream_st* stream) {
  switch (kind) {
    case AdamwKind::kFp32:
      return run<float, float, float, 4>(a, n, s, stream);
    case AdamwKind::kMasterBf16:
      return run<__nv_bfloat16, float, float, 4>(a, n, s, stream);
    default:
      return run<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, 8>(a, n, s, stream);
  }
}

}  // namespace troupe::optim
