#pragma once

#include <string>
#include <vector>

#include "base/trace/host_trace.h"

/// Where traces lie in a run folder: RUN/trace/steps-FIRST-LAST/slot-N.json, a file a host.
namespace troupe {

/// Under a temporary name, then renamed. Returns the path.
Result<std::string> write_host_trace(const std::string& run_folder, int64_t first_step, int64_t last_step,
                                     const HostTrace& trace);

/// The traces of one window, by slot.
struct TracedWindow {
  std::string folder;
  std::vector<HostTrace> hosts;
};
/// The window that was written last. NotFound when there is no such folder, and when it has none, which says how to get
/// one; DataLoss names a file that cannot be read.
Result<TracedWindow> read_traces(const std::string& run_folder);

/// A table for a person: for each host the mean step, kernels, waiting for peers, orchestration and bytes. Ends with a
/// newline.
std::string trace_table(const std::vector<HostTrace>& hosts);

}  // namespace troupe
