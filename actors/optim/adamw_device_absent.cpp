#include "actors/optim/adamw_device.h"
#include "base/result.h"

namespace troupe::optim {

void adamw_on_device(const AdamwTensors&, const std::vector<ElementRange>&, const AdamwScalars&, const AdamwScalars&) {
  throw ErrorException(internal_error("weights lie on a GPU in a build without CUDA"));
}

}  // namespace troupe::optim
