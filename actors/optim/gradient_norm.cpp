#include "actors/optim/gradient_norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "actors/kernels/row_functions.h"

namespace troupe::optim {
namespace {

/// Adds squared sum and count of non-finite values over `ranges` to `sum`, in the order of the ranges whatever the
/// threads.
template <typename Load>
void add_norm_on_cpu(const std::vector<ElementRange>& ranges, const Load& load, NormPart& sum) {
  std::vector<NormPart> partial(ranges.size());
  at::parallel_for(0, static_cast<int64_t>(ranges.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const ElementRange range = ranges[static_cast<size_t>(t)];
      double a = 0, b = 0, c = 0, d = 0;  // four chains: the additions do not wait for each other
      const auto square = [&load](int64_t i) {
        const auto x = static_cast<double>(load(i));
        return x * x;
      };
      int64_t at = range.begin;
      for (; at + 4 <= range.end; at += 4) {
        a += square(at);
        b += square(at + 1);
        c += square(at + 2);
        d += square(at + 3);
      }
      for (; at < range.end; ++at) a += square(at);
      NormPart& part = partial[static_cast<size_t>(t)];
      part.squared = (a + b) + (c + d);
      if (std::isfinite(part.squared)) continue;
      for (int64_t i = range.begin; i < range.end; ++i)
        part.non_finite += std::isfinite(static_cast<double>(load(i))) ? 0 : 1;
    }
  });
  for (const NormPart& part : partial) {
    sum.squared += part.squared;
    sum.non_finite += part.non_finite;
  }
}

}  // namespace

void GradientNorm::add(const at::Tensor& gradients, const std::vector<ElementRange>& ranges) {
  if (gradients.is_cpu() && gradients.scalar_type() == at::kFloat) {
    const float* data = gradients.const_data_ptr<float>();
    add_norm_on_cpu(
        ranges, [data](int64_t i) { return data[i]; }, sum_);
  } else if (gradients.is_cpu()) {
    const at::BFloat16* data = gradients.const_data_ptr<at::BFloat16>();
    add_norm_on_cpu(
        ranges, [data](int64_t i) { return static_cast<float>(data[i]); }, sum_);
  } else {
    if (!on_device_.defined()) on_device_ = at::zeros({2}, gradients.options().dtype(at::kDouble));
    for (const ElementRange& range : ranges)
      on_device_.add_(squares_and_non_finite(gradients.narrow(0, range.begin, range.end - range.begin)));
  }
}

NormPart GradientNorm::total() const {
  if (!on_device_.defined()) return sum_;
  const at::Tensor host = on_device_.cpu();
  return {host.data_ptr<double>()[0], host.data_ptr<double>()[1]};
}

}  // namespace troupe::optim
