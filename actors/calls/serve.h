#pragma once

#include "actors/host/host.h"

/// An actor host that a custom loop drives: instead of running the recorded loop it carries out calls.
namespace troupe {

/// Tells where it listens through the rendezvous store, reports ready, and carries out calls until a loop says that it
/// is done; then the job ends in order, with what the loop left behind in events.jsonl (handle_leaked) and the result.
/// Cancelled when the job is stopped. FailedPrecondition where hosts cannot listen (a driver reached over TCP).
Status serve_calls(Host& host, HostControl& control);

}  // namespace troupe
