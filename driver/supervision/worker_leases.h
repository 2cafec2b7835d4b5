#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Which workers have registered and still answer. Pure state machine; owner loop only.
namespace troupe::driver {

struct ExpectedWorker {
  std::string node;
  std::string address;  // for messages
};

/// A worker is expected, then present, then lost (silent for a lease, or its stream closed). A lost worker may register
/// again with a fresh incarnation; an incarnation that was lost is never believed again.
class WorkerLeases {
 public:
  using Time = std::chrono::steady_clock::time_point;
  WorkerLeases(std::vector<ExpectedWorker> expected, std::chrono::milliseconds lease,
               std::chrono::milliseconds register_timeout, Time now);

  /// Empty when accepted, else why not (unknown node, name taken by a live worker, lost incarnation).
  std::string registered(const std::string& node, const std::string& incarnation, Time now);
  void heartbeat(const std::string& node, const std::string& incarnation, Time now);
  /// True when this incarnation was present until now.
  bool stream_closed(const std::string& node, const std::string& incarnation);
  /// Workers whose lease has run out at `now`; each is named once.
  std::vector<std::string> expire(Time now);
  bool present(const std::string& node) const;
  /// Every node of `nodes` is present.
  bool all_present(const std::vector<std::string>& nodes) const;
  bool register_time_over(Time now) const { return now >= register_deadline_; }
  Time register_deadline() const { return register_deadline_; }
  /// "node b at 10.0.0.2, node c at 10.0.0.3": those of `nodes` (empty: all) that are not present.
  std::string missing(const std::vector<std::string>& nodes) const;
  std::chrono::milliseconds lease() const { return lease_; }

 private:
  struct Worker {
    std::string address, incarnation;
    std::vector<std::string> lost_incarnations;
    bool present = false;
    Time heard;
  };
  std::map<std::string, Worker> workers_;
  std::chrono::milliseconds lease_;
  Time register_deadline_;
};

}  // namespace troupe::driver
