#pragma once

#include <functional>

#include "base/rendezvous/shared_kv_store.h"

namespace troupe::testing {

/// Runs `body` in a forked child and returns its process id; the child exits with what `body` returns, or with 99 for
/// an exception.
int fork_child(const std::function<int()>& body);
/// The exit status of `pid`, or minus the signal that ended it.
int wait_for_exit(int pid);
/// Waits until `pid` has been stopped by a signal; false when it ended instead.
bool wait_for_stop(int pid);

}  // namespace troupe::testing
