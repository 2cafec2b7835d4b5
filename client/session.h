#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/rpc/call_link.h"

/// What stands behind a client::Job: the links to its hosts, the calls on their way, the leases. Private to this room.
namespace troupe::client {

/// Where a call goes.
struct Address {
  int group = 0, rank = 0, slot = 0;
};
struct Outgoing {
  Address to;
  wire::Call call;
  bool wanted = true;  // its answer is a result; false: it only has to succeed (rows that are sent along)
};

/// Calls that were sent together. Thread-safe.
class CallSet {
 public:
  /// Waits for all answers, which come in the order in which the calls were given; handles whatever arrives meanwhile.
  /// The first error ends the wait: a call's own, the loss of a host, or DeadlineExceeded, which names the first rank
  /// that has not answered. At most once.
  Result<std::vector<wire::Answer>> wait();

 private:
  friend class Session;
  /// What messages call it by.
  struct Name {
    int method = 0;  // of wire::Call's arguments
    Address to;
  };
  std::shared_ptr<class Session> session_;
  EventQueue::Waiter done_;
  std::mutex mutex_;
  std::vector<wire::Answer> answers_;   // of those wanted
  std::vector<Name> names_;             // by call
  std::vector<bool> answered_;          // by call
  uint64_t first_id_ = 0, end_id_ = 0;  // of its calls; equal when they were not sent
  size_t open_ = 0;
  std::optional<Error> error_;
  std::chrono::steady_clock::time_point deadline_;
};

/// Thread-safe. Lives as long as the job, a handle or a set of calls refers to it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Clock = std::chrono::steady_clock;
  Session(Directory directory, std::chrono::milliseconds lease);
  ~Session();
  Status open(const Secrets& secrets, const std::string& name);
  /// Ends all links; what waits ends with Cancelled.
  void close();

  const wire::CallDirectory& directory() const { return directory_.job; }
  Address address(int group, int rank) const;
  /// One rank for each host.
  std::vector<Address> hosts() const;
  /// Sends `calls` in this order, which is the order on every host even when several threads send.
  std::shared_ptr<CallSet> send(std::vector<Outgoing> calls, std::chrono::milliseconds timeout);

  /// A set that was not sent.
  std::shared_ptr<CallSet> refused(Error error);

  uint64_t new_object() { return last_object_++; }
  /// Renews the object's lease on the group's hosts until it is dropped.
  void hold(int group, uint64_t object);
  void drop(int group, uint64_t object);

 private:
  struct Waiting {
    std::shared_ptr<CallSet> set;
    size_t call = 0, result = SIZE_MAX;
    int slot = 0;
  };
  void answered(wire::Answer& answer);
  void lost(int slot, const Error& error);
  void fail(const Waiting& waiting, Error error);
  void forget(const CallSet& set);
  bool any_behind(const std::vector<Outgoing>& calls);
  /// Every 20 ms, on the queue's own thread.
  void renew_leases();
  std::string name_of(const CallSet::Name& name) const;
  std::set<int> slots_of(int group) const;
  friend class CallSet;

  const Directory directory_;
  const std::chrono::milliseconds lease_;
  std::unique_ptr<EventQueue> queue_;
  std::vector<std::unique_ptr<CallLink>> links_;  // by slot
  std::mutex order_;                              // held while the calls of a set are queued
  std::mutex mutex_;
  std::unordered_map<uint64_t, Waiting> waiting_;
  std::map<int, Error> lost_;                // by slot
  std::set<std::pair<int, uint64_t>> held_;  // [group, object]
  std::atomic<uint64_t> last_object_;
  uint64_t last_id_ = 0;
  bool closed_ = false;
  Clock::time_point next_renewal_;
};

}  // namespace troupe::client
