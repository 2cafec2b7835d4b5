#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "base/loop/owner_loop.h"

namespace troupe {

/// The second line of a world on CPUs: a thread that runs posted work, one after the other. After the first work that
/// throws the rest is not run, and every wait throws the same. Owner thread only, but for the thread inside. Destroying
/// it waits for the work under way: whoever may not wait aborts that first.
class PostedLine {
 public:
  PostedLine();
  /// Returns the work's number, from 1.
  int64_t post(std::function<void()> work);
  /// Returns when all work up to `number` has ended. Each collective inside has its deadline, so this has one too.
  void wait(int64_t number);
  /// Nothing is under way.
  bool idle();

 private:
  void run(const std::function<void()>& work, int64_t number);

  std::mutex mutex_;
  std::condition_variable ended_;
  int64_t posted_ = 0, done_ = 0;
  std::exception_ptr error_;
  OwnerLoop loop_;  // last: its thread uses the rest
};

}  // namespace troupe
