#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/supervision/host_place.h"

/// Who broke a job first. When one rank dies the others fail too, and blame each other: evidence is gathered for a
/// moment and ranked.
namespace troupe::driver {

/// The first cause of a job's failure as a person reads it.
struct Verdict {
  std::string kind;  // one of the words in outcome.h
  int slot = -1;
  Error error;  // message names role, rank, node, slot, pid, step, instruction and log
};

/// Pure state machine; owner loop only. Ranking: a host that died without a word (signal or exit status), then a rank's
/// own error, then errors that only point at a peer (unavailable, aborted, cancelled, deadline exceeded), then lost
/// connections. The earliest of a class wins.
class Blame {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// The longest time between the first evidence and the verdict.
  static constexpr std::chrono::milliseconds kGather{1000};
  /// After a death without a word nothing can outrank it; what else died in the same moment is still waited for.
  static constexpr std::chrono::milliseconds kGatherAfterDeath{150};

  explicit Blame(std::vector<HostPlace> places) : places_(std::move(places)) {}
  void host_error(int slot, Error error, Time now);
  void host_exited(int slot, HostExit exit, Time now);
  void link_lost(int slot, Time now);
  void worker_lost(const std::string& node, Time now);
  /// When the verdict is due; nothing while there is no evidence.
  std::optional<Time> due() const;
  /// True when every host has given evidence: no need to wait any longer.
  bool complete() const;
  Verdict verdict() const;

 private:
  enum class Class { kDeath, kOwnError, kPointer, kLost };
  struct Evidence {
    Class rank = Class::kLost;
    Time time;
    std::optional<Error> error;
    std::optional<HostExit> exit;
    std::string lost_node;
  };
  Evidence& evidence_of(int slot, Time now);
  std::string describe(int slot, const Evidence& evidence) const;
  /// Hosts without any evidence: when all that is known points at peers, the stuck one is among them.
  std::string silent() const;

  std::vector<HostPlace> places_;
  std::map<int, Evidence> evidence_;
};

}  // namespace troupe::driver
