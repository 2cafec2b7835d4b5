#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "proto/rpc/calls.pb.h"
#include "proto/rpc/event_queue.h"
#include "proto/rpc/secrets.h"

/// The stream from a custom loop to one actor host.
namespace troupe::client {

/// Called by handlers of the queue; must not block. `answered` may take the answer's contents; after `lost` nothing
/// comes.
struct LinkEvents {
  std::function<void(wire::Answer& answer)> answered;
  std::function<void(const Error& error)> lost;
};

/// Thread-safe. Messages leave at once; those that come while one is on its way leave together, in order, as soon as
/// the queue has heard of its departure.
class CallLink {
 public:
  /// `address` as the host announced it. Does not wait; a host that cannot be reached or refuses is `lost`.
  static Result<std::unique_ptr<CallLink>> open(const std::string& address, const Secrets& secrets,
                                                const wire::LoopGreeting& greeting, EventQueue& queue,
                                                LinkEvents events);
  /// Ends the stream; no event comes afterwards.
  virtual ~CallLink() = default;
  /// Whether messages wait for the departure of one before.
  virtual bool behind() = 0;
  virtual void call(wire::Call call) = 0;
  virtual void renew(const std::vector<uint64_t>& objects) = 0;
  virtual void release(uint64_t object) = 0;
};

/// What the hosts of a job have left in its rendezvous store: who they are and where they listen. Waits until all have.
struct Directory {
  wire::CallDirectory job;
  std::vector<std::string> addresses;  // by slot; empty where no group has a rank
};
Result<Directory> find_hosts(const std::string& driver, const Secrets& secrets, const std::string& job,
                             std::chrono::milliseconds timeout);

}  // namespace troupe::client
