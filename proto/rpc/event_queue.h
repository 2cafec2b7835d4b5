#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace grpc {
class CompletionQueue;
}

/// A gRPC completion queue without a thread that stands between an event and who waits for it: whoever waits handles
/// the events, its own and those of others. Both ends of direct calls stand on it.
namespace troupe {

/// What is done when an operation ends; the operation's tag is the address of one of these. `ok` as gRPC says it.
using EventHandler = std::function<void(bool ok)>;

/// In the environment of a process that has other threads in gRPC as well, {name, value}: each thread then polls for
/// its own connections. By default they take turns in polling for all, so that an event wakes the wrong thread first.
inline constexpr const char* kPollForOneself[2] = {"GRPC_POLL_STRATEGY", "poll"};

/// Thread-safe. Handlers run one at a time, on one of the threads that wait; they must not block or wait. What happens
/// while nobody waits is handled by a thread of the queue's own, 20 ms late at most.
class EventQueue {
 public:
  using Clock = std::chrono::steady_clock;
  /// Something that a thread waits for; used by one thread at a time.
  class Waiter {
    friend class EventQueue;
    std::atomic<bool> done_ = false;
    std::condition_variable changed_;
  };

  /// `ticked` is called about every 20 ms on the queue's own thread, also while others wait.
  explicit EventQueue(std::function<void()> ticked);
  /// Over a server's queue; its server has been shut down when this is destroyed.
  explicit EventQueue(std::unique_ptr<grpc::CompletionQueue> queue);
  /// Nobody waits and nothing is started any more, by handlers neither. Handles what is still to come.
  ~EventQueue();

  grpc::CompletionQueue* grpc_queue() { return queue_.get(); }
  /// Handles events until `waiter` is finished; false at the deadline.
  bool wait(Waiter& waiter, Clock::time_point deadline);
  /// To be called by handlers, or ahead of something that causes an event: a thread that polls is not woken by it.
  void finish(Waiter& waiter);
  /// Makes a finished waiter one to wait for again.
  void reset(Waiter& waiter);
  /// Handles what has already happened, until `enough`; leaves it to the others when they are at it.
  void work_off(const std::function<bool()>& enough);

 private:
  /// Under the lock, which is open meanwhile. Handles events until `done` or none comes before `deadline`.
  void lead(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done, Clock::time_point deadline);
  void wake_follower();
  void take_care();

  std::unique_ptr<grpc::CompletionQueue> queue_;
  const std::function<void()> ticked_;
  std::mutex mutex_;
  bool led_ = false;               // a thread handles events
  std::deque<Waiter*> followers_;  // the others, which one of them will succeed
  bool closed_ = false;
  std::condition_variable closing_;
  std::thread caretaker_;
};

}  // namespace troupe
