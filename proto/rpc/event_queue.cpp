#include "proto/rpc/event_queue.h"

#include <grpc/support/time.h>
#include <grpcpp/completion_queue.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kTick{20};

gpr_timespec to_gpr(EventQueue::Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - EventQueue::Clock::now()).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(std::max<int64_t>(left, 0), GPR_TIMESPAN));
}

}  // namespace

EventQueue::EventQueue(std::function<void()> ticked)
    : queue_(std::make_unique<grpc::CompletionQueue>()),
      ticked_(std::move(ticked)),
      caretaker_([this] { take_care(); }) {}
EventQueue::EventQueue(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), caretaker_([this] { take_care(); }) {}

EventQueue::~EventQueue() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  closing_.notify_all();
  caretaker_.join();
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) (*static_cast<EventHandler*>(tag))(ok);
}

bool EventQueue::wait(Waiter& waiter, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  bool in_time = true;
  while (!waiter.done_ && in_time) {
    if (!led_) {
      lead(
          lock, [&] { return waiter.done_ || Clock::now() >= deadline; }, deadline);
      return waiter.done_;
    }
    followers_.push_back(&waiter);
    in_time = waiter.changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    followers_.erase(std::find(followers_.begin(), followers_.end(), &waiter));
  }
  if (!led_) wake_follower();  // it may have been this one's turn
  return waiter.done_;
}

void EventQueue::finish(Waiter& waiter) {
  std::lock_guard lock(mutex_);
  waiter.done_ = true;
  waiter.changed_.notify_all();
}

void EventQueue::reset(Waiter& waiter) {
  std::lock_guard lock(mutex_);
  waiter.done_ = false;
}

void EventQueue::work_off(const std::function<bool()>& enough) {
  std::unique_lock lock(mutex_);
  if (!led_) lead(lock, enough, Clock::time_point());
}

void EventQueue::lead(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done,
                      Clock::time_point deadline) {
  led_ = true;
  lock.unlock();
  const gpr_timespec until = to_gpr(deadline);
  void* tag = nullptr;
  bool ok = false;
  while (!done() && queue_->AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT)
    (*static_cast<EventHandler*>(tag))(ok);
  lock.lock();
  led_ = false;
  wake_follower();
}

void EventQueue::wake_follower() {
  if (!followers_.empty()) followers_.front()->changed_.notify_all();
}

void EventQueue::take_care() {
  std::unique_lock lock(mutex_);
  while (!closing_.wait_for(lock, kTick, [this] { return closed_; })) {
    if (ticked_) {
      lock.unlock();
      ticked_();
      lock.lock();
    }
    if (!led_)
      lead(
          lock, [] { return false; }, Clock::time_point());
  }
}

}  // namespace troupe
