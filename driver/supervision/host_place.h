#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

/// Plain values that the supervision machines share.
namespace troupe::driver {

/// Where one host of a job lives and which actors it holds; fixed by the plan.
struct HostPlace {
  std::string node;
  int index = 0;                                    // slot on the node
  std::vector<std::pair<std::string, int>> actors;  // (group, rank)
  std::string log_path;
  /// "text/1 and vision/0".
  std::string roles() const;
};

/// How a host ended and what its progress page said last.
struct HostExit {
  int pid = 0;
  int exit_code = 0;
  int signal = 0;  // 0: it exited by itself
  bool page_valid = false;
  int64_t step = 0;
  std::string instruction;
  std::string group;  // of the instruction; empty: not known
  int rank = -1;
  std::string said;        // what its log says of the signal; empty: nothing
  int64_t stopped_ms = 0;  // it stood still so long, and its worker ended it for that; 0: it did not
};

}  // namespace troupe::driver
