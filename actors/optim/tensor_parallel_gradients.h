#pragma once

#include "actors/nn/parameter_store.h"
#include "transport/world/world.h"

namespace troupe::optim {

/// Completes gradients over tp where the declarations ask for it: kSum parameters, and the rows of KV heads that several ranks hold.
/// Collective over {tp}; one all-reduce for each 16 Mi elements. Owner thread only.
void sum_over_tensor_parallel(ParameterStore& store, Communicator& tp);

}  // namespace troupe::optim
