#pragma once

#include <functional>

#include "transport/world/world.h"

namespace troupe::testing {

/// Runs `body` on every rank of `mesh`, a thread a rank, in a real Gloo world with communicators over {tp} and {dp, cp,
/// sp}. Throws what the first failing rank threw.
void on_every_rank(const Mesh& mesh, const std::function<void(World&)>& body);

}  // namespace troupe::testing
