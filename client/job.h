#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "client/methods.h"
#include "proto/rpc/secrets.h"

/// A training loop of one's own: calls on the actor groups of a running job (`troupe run JOB --loop PROGRAM`), straight
/// from the loop to the actor hosts. docs/direct-calls.md says what the methods do and in which order they make a step.
namespace troupe::client {

using std::chrono::milliseconds;
/// A call without a deadline of its own waits this long.
inline constexpr milliseconds kCallTimeout{600000};

class Session;
class CallSet;

struct ConnectOptions {
  std::string driver;            // "unix:PATH" or "HOST:PORT"
  std::string job;               // id
  Secrets secrets;               // with a TCP driver
  std::string name = "loop";     // told to another loop that comes while this one holds the job
  milliseconds lease{30000};     // 100 ms to an hour; handles of a loop that has died are let go of after it
  milliseconds timeout{600000};  // for all hosts to be ready
};
/// What `troupe run --loop` tells its program: TROUPE_DRIVER and TROUPE_JOB, and TROUPE_SECRETS where there are any.
Result<ConnectOptions> options_from(const std::map<std::string, std::string>& environment);

/// One tensor that a group's hosts keep, a part on each rank: rows [T, H] of an encoder's unit, or their gradients of a
/// decoder's unit, in the model's compute dtype. It can be passed on before the call that makes it is done. Its lease
/// is renewed while a copy of this object lives; with the last copy the hosts let go of it. Thread-safe.
class TensorHandle {
 public:
  TensorHandle() = default;
  uint64_t object() const;
  /// The part of a rank, as calls name it. dtype and shapes stand in the reply of the call that makes it.
  const wire::TensorHandle& part(Rank rank) const;
  /// Adds all parts to a call's arguments.
  void add_to(google::protobuf::RepeatedPtrField<wire::TensorHandle>* handles) const;

 private:
  friend class ActorGroup;
  struct Held;
  std::shared_ptr<const Held> held_;  // shared by the copies of a handle: the last one releases it
};

/// Results that will come.
template <typename Reply>
class Pending {
 public:
  explicit Pending(std::shared_ptr<CallSet> calls) : calls_(std::move(calls)) {}
  /// By rank. At most once. The first error of any rank, or DeadlineExceeded.
  Result<std::vector<Reply>> wait();

 private:
  std::shared_ptr<CallSet> calls_;  // shared with the links that fill it
};

/// Thread-safe. Calls reach every host in the order in which they were made; each host carries out one after the other.
class ActorGroup {
 public:
  const std::string& name() const;
  int size() const;

  /// A call on one rank; for methods that are not marked "all ranks of a group together" in calls.proto.
  template <typename Request>
  Result<typename Method<Request>::Reply> execute(Rank rank, const Request& arguments,
                                                  milliseconds timeout = kCallTimeout) {
    auto replies = execute_async(rank, arguments, timeout).wait();
    if (!replies.ok()) return replies.error();
    return std::move(replies->front());
  }
  /// The same without waiting; one result.
  template <typename Request>
  Pending<typename Method<Request>::Reply> execute_async(Rank rank, const Request& arguments,
                                                         milliseconds timeout = kCallTimeout) {
    wire::Call call;
    Method<Request>::put(arguments, call);
    return Pending<typename Method<Request>::Reply>(send_one(rank, std::move(call), timeout));
  }
  /// The same call on every rank. Handles of another group among the arguments are sent along: their rows leave
  /// their hosts for this group's before the call.
  template <typename Request>
  Pending<typename Method<Request>::Reply> execute_all_async(const Request& arguments,
                                                             milliseconds timeout = kCallTimeout) {
    wire::Call call;
    Method<Request>::put(arguments, call);
    return Pending<typename Method<Request>::Reply>(send_all(std::move(call), timeout));
  }
  template <typename Request>
  Result<std::vector<typename Method<Request>::Reply>> execute_all(const Request& arguments,
                                                                   milliseconds timeout = kCallTimeout) {
    return execute_all_async(arguments, timeout).wait();
  }

  /// A handle for what a call on all ranks will make of `unit`: rows (encoder) or row gradients (decoder) of the job's
  /// batch. Its object number goes into the call's arguments.
  TensorHandle new_handle(int64_t batch, int unit) const;

 private:
  friend class Job;
  ActorGroup(std::shared_ptr<Session> session, int group) : session_(std::move(session)), group_(group) {}
  std::shared_ptr<CallSet> send_one(Rank rank, wire::Call call, milliseconds timeout) const;
  std::shared_ptr<CallSet> send_all(wire::Call call, milliseconds timeout) const;

  std::shared_ptr<Session> session_;  // shared with the job, its handles and the calls on their way
  int group_;
};

/// A running job, held by this loop until it is destroyed: another loop is refused meanwhile. Thread-safe.
class Job {
 public:
  /// Waits until all hosts are ready. FailedPrecondition: another loop holds the job.
  static Result<std::unique_ptr<Job>> connect(const ConnectOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Generation generation() const;
  /// Groups in the order of the job spec.
  std::vector<ActorGroup>& groups() { return groups_; }
  ActorGroup& encoder();
  ActorGroup& decoder();
  /// A call on one rank of every host, for methods marked "of a host"; replies in the order of slots.
  template <typename Request>
  Pending<typename Method<Request>::Reply> execute_hosts_async(const Request& arguments,
                                                               milliseconds timeout = kCallTimeout) {
    wire::Call call;
    Method<Request>::put(arguments, call);
    return Pending<typename Method<Request>::Reply>(send_hosts(std::move(call), timeout));
  }
  template <typename Request>
  Result<std::vector<typename Method<Request>::Reply>> execute_hosts(const Request& arguments,
                                                                     milliseconds timeout = kCallTimeout) {
    return execute_hosts_async(arguments, timeout).wait();
  }
  /// The loop is done: hosts end in order and the job with them. Returns how many handles were still held, which the
  /// job's events name. `steps`: for the job's result.
  Result<int> finish(int64_t steps, milliseconds timeout = kCallTimeout);

 private:
  explicit Job(std::shared_ptr<Session> session);
  std::shared_ptr<CallSet> send_hosts(wire::Call call, milliseconds timeout) const;

  std::shared_ptr<Session> session_;  // shared as above
  std::vector<ActorGroup> groups_;
};

/// Waits for the answers of a set; private to the templates here.
Result<std::vector<wire::Answer>> wait_for(const std::shared_ptr<CallSet>& calls);

template <typename Reply>
Result<std::vector<Reply>> Pending<Reply>::wait() {
  auto answers = wait_for(std::exchange(calls_, nullptr));
  if (!answers.ok()) return answers.error();
  std::vector<Reply> replies;
  replies.reserve(answers->size());
  for (wire::Answer& answer : *answers) replies.push_back(take_reply<Reply>(answer));
  return replies;
}

}  // namespace troupe::client
