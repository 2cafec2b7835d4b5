#pragma once

#include <cstdint>

#include "actors/optim/adamw_kernel.h"

struct CUstream_st;

/// The update's kernel on raw device addresses; no LibTorch here, so that nvcc reads little.
namespace troupe::optim {

enum class AdamwKind : uint8_t { kFp32, kMasterBf16, kBf16 };

/// Elements [0, n) behind these addresses. Launches on `stream`; a refused launch is returned as its text, else null.
struct AdamwArrays {
  void* weight;
  float* master;  // kMasterBf16 only
  const void* gradient;
  void *exp_avg, *exp_avg_sq;
};
const char* launch_adamw(AdamwKind kind, const AdamwArrays& arrays, int64_t n, const AdamwScalars& scalars,
                         CUstream_st* stream);

}  // namespace troupe::optim
