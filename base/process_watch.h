#pragma once

#include <string>

#include "base/result.h"

namespace troupe {

/// Identifies the running kernel: process ids mean something only within one boot of one machine.
std::string boot_id();

/// This process, as a peer that wants to know when it ends is told: boot, pid namespace, pid and start time.
std::string own_process();

/// A descriptor that is readable once the process has ended, for the caller to close; -1 when it cannot be watched from
/// here (another machine or container, or this very process). Unavailable: it has ended already.
Result<int> watch_process(const std::string& process);

/// Whether a process stands still by SIGSTOP, SIGTSTP or their like; false too for one that a debugger holds, and when
/// there is none.
bool is_stopped(int pid);

}  // namespace troupe
