#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

/// Programs that a command runs to their end, with its own streams. For hosts and workers there is worker/supervision.
namespace troupe::cli {

/// Starts `command` (a path and its arguments), which does not outlive the calling thread. `standard_error`: a
/// descriptor that becomes its standard error; -1: ours. kNotFound when it cannot be started.
Result<pid_t> start_program(std::vector<std::string> command, int standard_error = -1);
/// Waits until it has ended: its wait status. It runs as long as it likes; SIGINT, SIGTERM, SIGHUP and SIGUSR1 are
/// passed on to it (a terminal's Ctrl-C reaches it by itself). One thread.
int wait_for_program(pid_t pid);

}  // namespace troupe::cli
