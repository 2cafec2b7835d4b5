#pragma once

#include <ATen/core/Tensor.h>

/// How small host values (index lists, segment bounds, tables) get to the device of a computation.
namespace troupe {

/// `values` on `device`: itself where it is there already; from CPU memory of any owner to a GPU a copy ordered on the
/// current stream. It goes by way of pinned memory, so that the calling thread does not wait for the stream, and
/// `values` may be changed or freed as soon as this returns.
inline at::Tensor copy_to_device(const at::Tensor& values, at::Device device) {
  return device.is_cpu() || !values.is_cpu() ? values.to(device)
                                             : values.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace troupe
