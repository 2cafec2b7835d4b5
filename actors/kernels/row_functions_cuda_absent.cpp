#include "actors/kernels/row_functions_cuda.h"
#include "base/result.h"

/// The build without CUDA: nothing is taken, so nothing else may be called.
namespace troupe::cuda {
namespace {

[[noreturn]] void absent() { throw ErrorException(internal_error("a CUDA kernel was called in a build without CUDA")); }

}  // namespace

bool takes_norm(const at::Tensor& /*x*/) { return false; }
bool takes_swiglu(const at::Tensor& /*gate_up*/) { return false; }
bool takes_rope(const at::Tensor& /*rows*/, int64_t /*head_dim*/) { return false; }
bool takes_squares(const at::Tensor& /*x*/) { return false; }

RmsNormResult rms_norm_rows(const at::Tensor&, const at::Tensor&, const at::Tensor&, double) { absent(); }
at::Tensor rms_norm_rows_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                  const at::Tensor&, at::Tensor, bool) {
  absent();
}
at::Tensor swiglu_rows(const at::Tensor&) { absent(); }
at::Tensor swiglu_rows_backward(const at::Tensor&, const at::Tensor&) { absent(); }
void rope_split_rows(const RopeTensors&, bool) { absent(); }
at::Tensor squares(const at::Tensor&) { absent(); }

}  // namespace troupe::cuda
