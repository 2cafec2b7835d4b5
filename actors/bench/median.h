#pragma once

#include <algorithm>
#include <vector>

/// What a bench says of several measurements.
namespace troupe {

/// The middle of `values`, of an even number the upper one; there is at least one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace troupe
