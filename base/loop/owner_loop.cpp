#include "base/loop/owner_loop.h"

namespace troupe {

OwnerLoop::OwnerLoop() : thread_([this] { run(); }) {}

OwnerLoop::~OwnerLoop() { finish(); }

bool OwnerLoop::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    queue_.push_back(std::move(task));
  }
  changed_.notify_all();
  return true;
}

void OwnerLoop::post_at(Clock::time_point when, Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    timers_.emplace(when, std::move(task));
  }
  changed_.notify_all();
}

void OwnerLoop::finish() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OwnerLoop::wait_until_ended() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
}

void OwnerLoop::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!queue_.empty()) {
      Task task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      continue;
    }
    if (stopping_) {
      ended_ = true;
      changed_.notify_all();
      return;
    }
    if (timers_.empty()) {
      changed_.wait(lock);
      continue;
    }
    auto first = timers_.begin();
    if (first->first > Clock::now()) {
      changed_.wait_until(lock, first->first);
      continue;
    }
    queue_.push_back(std::move(first->second));
    timers_.erase(first);
  }
}

}  // namespace troupe
