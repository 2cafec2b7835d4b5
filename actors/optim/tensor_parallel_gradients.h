#pragma once

#include <vector>

#include "actors/nn/parameter_store.h"
#include "transport/world/world.h"

namespace troupe::optim {

/// One gradient that needs a sum over tp. In the common buffer it takes `elements` places, of which this rank fills its
/// own from `own_begin`.
struct TensorParallelSum {
  at::Tensor gradient;
  int64_t elements = 0, own_begin = 0;
};

/// Which gradients of parameters [first, last) the declarations want summed over tp: those of kSum parameters, and the
/// rows of KV heads that several ranks hold. The same list on every rank; empty without tp.
std::vector<TensorParallelSum> tensor_parallel_sums(ParameterStore& store, int first, int last);

/// Carries them out. Collective over {tp}; one all-reduce for each 16 Mi elements.
void sum_over_tensor_parallel(const std::vector<TensorParallelSum>& sums, Communicator& tp);

}  // namespace troupe::optim
