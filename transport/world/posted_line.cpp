#include "transport/world/posted_line.h"

#include <ATen/Parallel.h>
#include <omp.h>

namespace troupe {

PostedLine::PostedLine() {
  // Its sums are bound by memory, and the threads of the slot belong to the owner's work. The first question after the
  // number of threads is what sets it for a new thread.
  loop_.post([] {
    (void)at::get_num_threads();
    omp_set_num_threads(1);
  });
}

int64_t PostedLine::post(std::function<void()> work) {
  const int64_t number = ++posted_;
  loop_.post([this, number, work = std::move(work)] { run(work, number); });
  return number;
}

void PostedLine::run(const std::function<void()>& work, int64_t number) {
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = error_;
  }
  if (!error) {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  }
  {
    std::lock_guard lock(mutex_);
    done_ = number;
    error_ = error;
  }
  ended_.notify_all();
}

void PostedLine::wait(int64_t number) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_ >= number || error_; });
  if (error_) std::rethrow_exception(error_);
}

bool PostedLine::idle() {
  std::lock_guard lock(mutex_);
  return done_ == posted_;
}

}  // namespace troupe
