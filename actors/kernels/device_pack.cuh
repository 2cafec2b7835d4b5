#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

/// What the kernels of elements in fp32 or bf16 share: arithmetic is in fp32, and neighbouring elements are read and
/// written at once.
namespace troupe::cuda {

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void narrow(float& to, float x) { to = x; }
__device__ inline void narrow(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }

/// `N` neighbouring elements, aligned to their size.
template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T values[N];
};
template <int N, typename T>
__device__ inline Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, typename T>
__device__ inline void store(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// Why the last launch was refused, or null.
inline const char* launch_refused() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace troupe::cuda
