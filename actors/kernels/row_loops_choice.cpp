#include "actors/kernels/row_loops.h"

namespace troupe {

extern const RowLoops kRowLoopsBaseline;
extern const RowLoops kRowLoopsAvx2;
extern const RowLoops kRowLoopsAvx512;

static const RowLoops* choose() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return &kRowLoopsAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kRowLoopsAvx2;
  return &kRowLoopsBaseline;
}

const RowLoops& row_loops() {
  static const RowLoops* const chosen = choose();
  return *chosen;
}

}  // namespace troupe
