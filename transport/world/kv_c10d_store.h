#pragma once

#include <c10/util/intrusive_ptr.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "base/rendezvous/kv_store.h"

namespace troupe {

/// The rendezvous store in the form that c10d's process groups want; every key gets `prefix`. A wait that runs out
/// throws ErrorException with the store's error. `store` outlives what is made with it. Included by backends only: it
/// pulls in c10d.
c10::intrusive_ptr<c10d::Store> make_kv_c10d_store(KvStore& store, std::string prefix,
                                                   std::chrono::milliseconds timeout);

}  // namespace troupe
