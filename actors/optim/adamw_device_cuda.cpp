#include <c10/cuda/CUDAStream.h>

#include "actors/optim/adamw_device.h"
#include "actors/optim/adamw_gpu_kernel.h"
#include "base/result.h"

namespace troupe::optim {

void adamw_on_device(const AdamwTensors& t, const std::vector<ElementRange>& ranges, const AdamwScalars& with_decay,
                     const AdamwScalars& without_decay) {
  const auto kind = t.master.defined()                         ? AdamwKind::kMasterBf16
                    : t.weights.scalar_type() == at::kBFloat16 ? AdamwKind::kBf16
                                                               : AdamwKind::kFp32;
  TROUPE_CHECK(t.gradients.scalar_type() == t.exp_avg.scalar_type());
  TROUPE_CHECK((kind == AdamwKind::kBf16) == (t.gradients.scalar_type() == at::kBFloat16));
  const auto stream = c10::cuda::getCurrentCUDAStream(t.weights.device().index()).stream();
  const auto at = [](const at::Tensor& x, int64_t element) {
    return static_cast<void*>(static_cast<char*>(x.data_ptr()) + element * static_cast<int64_t>(x.element_size()));
  };
  for (const ElementRange& range : ranges) {
    const int64_t i = range.begin;
    const AdamwArrays arrays{at(t.weights, i), t.master.defined() ? static_cast<float*>(at(t.master, i)) : nullptr,
                             at(t.gradients, i), at(t.exp_avg, i), at(t.exp_avg_sq, i)};
    const char* refused = launch_adamw(kind, arrays, range.end - i, range.decay ? with_decay : without_decay, stream);
    if (refused != nullptr) throw ErrorException(internal_error(std::string("CUDA refused the update: ") + refused));
  }
}

}  // namespace troupe::optim
