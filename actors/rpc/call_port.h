#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "proto/rpc/calls.pb.h"

/// Where calls of a custom loop arrive at an actor host: the Calls service of calls.proto on a socket of its own.
namespace troupe {

/// A call that waits to be carried out, or objects to let go of: those that nobody needs behind the calls before.
struct IncomingCall {
  uint64_t session = 0;  // of the loop that sent it
  std::chrono::steady_clock::time_point deadline;
  wire::Call call;
  google::protobuf::RepeatedField<uint64_t> released;  // not empty: there is no call
};

/// What does not wait for the calls before it. Called by the thread that takes calls, or, while it is busy, by one of
/// the port's own; must not block.
struct LeaseEvents {
  std::function<void(std::chrono::milliseconds lease)> greeted;
  std::function<void(const google::protobuf::RepeatedField<uint64_t>& objects)> renewed;
};

/// Thread-safe. Serves one loop at a time: while its stream lives, another is refused by name. Calls are taken in the
/// order in which they were sent; at 4,096 that wait here, further ones wait in the sender's process. Answers that are
/// given while one is on its way leave together, up to 1 MiB of them.
class CallPort {
 public:
  /// `address`: "unix:PATH"; the socket's folder is private to the user, nothing else is checked.
  static Result<std::unique_ptr<CallPort>> listen(const std::string& address, LeaseEvents events);
  /// Ends the stream, with what was answered before.
  virtual ~CallPort() = default;
  /// The next call; false when none came within `timeout`.
  virtual bool take(IncomingCall& call, std::chrono::milliseconds timeout) = 0;
  /// As many calls wait as may: nothing more is read, renewals neither.
  virtual bool full() = 0;
  /// Dropped when the session has ended.
  virtual void answer(uint64_t session, wire::Answer answer) = 0;
};

}  // namespace troupe
