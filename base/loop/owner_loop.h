#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <type_traits>

/// The one thread that owns a stateful object. Others post to it; inside it nothing needs a lock.
namespace troupe {

class OwnerLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;

  OwnerLoop();
  /// Runs what was posted before, then joins. Timers that are not due are dropped.
  ~OwnerLoop();
  OwnerLoop(const OwnerLoop&) = delete;
  OwnerLoop& operator=(const OwnerLoop&) = delete;

  /// Thread-safe; never blocks. After finish() the task is dropped and the answer is false.
  bool post(Task task);
  /// Thread-safe: runs `task` on the loop at `when` or as soon after it as possible.
  void post_at(Clock::time_point when, Task task);
  /// Ends the loop after what is queued now and joins its thread; not from the loop itself. Posting afterwards does
  /// nothing.
  void finish();
  bool on_loop() const { return std::this_thread::get_id() == thread_.get_id(); }

  /// Runs `function` on the loop and waits for its value. Not to be called on the loop itself. After finish() the owned
  /// state has no other thread any more: `function` then runs on the caller, one caller at a time.
  template <typename Function>
  auto ask(Function function) {
    using Value = decltype(function());
    std::promise<Value> promise;
    auto future = promise.get_future();
    const bool posted = post([&] {
      if constexpr (std::is_void_v<Value>) {
        function();
        promise.set_value();
      } else {
        promise.set_value(function());
      }
    });
    if (posted) return future.get();
    wait_until_ended();
    const std::lock_guard alone(after_end_);
    return function();
  }

 private:
  void run();
  void wait_until_ended();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  std::multimap<Clock::time_point, Task> timers_;
  bool stopping_ = false, ended_ = false;
  std::mutex after_end_;
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace troupe
