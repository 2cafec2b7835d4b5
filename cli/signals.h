#pragma once

#include <chrono>

/// Signals as values: blocked in every thread, taken one at a time by whoever waits.
namespace troupe::cli {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 for this thread and those it starts. Call before any thread starts.
void block_signals();
/// For what goes on without a reader of its output; every other command ends by SIGPIPE, without a word.
void ignore_closed_pipes();
/// The next signal's number, or 0 when none came within `timeout`.
int wait_signal(std::chrono::milliseconds timeout);

}  // namespace troupe::cli
