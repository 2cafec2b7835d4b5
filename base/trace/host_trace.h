#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/trace/trace_log.h"

/// The trace of one host as it lies in RUN/trace/slot-N.json, and what is made of several: a picture for Perfetto, and
/// the costs of a step. Pure.
namespace troupe {

/// Adding `offset_ns` to a time of this host's clock gives the driver's time, wrong by at most `error_ns`.
struct ClockOffset {
  int64_t offset_ns = 0, error_ns = 0;
};

struct HostTrace {
  int slot = 0, pid = 0;
  std::string node;
  std::vector<std::string> groups;          // names, in the order of the spec
  std::vector<std::pair<int, int>> actors;  // group and rank of each on this host
  ClockOffset clock;
  int64_t dropped = 0;  // spans that the log had no room for
  std::vector<Span> spans;

  std::string to_json() const;
  /// InvalidArgument says what is missing.
  static Result<HostTrace> from_json(const std::string& text);
};

/// One file for https://ui.perfetto.dev or chrome://tracing: a process for each host, a track for each actor and second
/// thread, an arrow for each message. All on the driver's clock; time zero is the first span's begin.
std::string chrome_trace(const std::vector<HostTrace>& hosts);

/// Where the time of one host's step went. kernel + peer + rest = step.
struct StepCosts {
  int64_t step = 0;
  int64_t step_ns = 0, kernel_ns = 0, peer_ns = 0;  // of the executor's thread; overlapping spans count once
  int64_t rest_ns = 0;                              // neither tensor work nor waiting for a peer's data: orchestration
  int64_t sent_bytes = 0, received_bytes = 0;
};
std::vector<StepCosts> step_costs(const HostTrace& host);

}  // namespace troupe
