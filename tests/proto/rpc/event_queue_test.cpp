#include "proto/rpc/event_queue.h"

#include <grpcpp/alarm.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>

using namespace troupe;
using std::chrono::milliseconds;

namespace {

using Clock = EventQueue::Clock;
constexpr std::chrono::seconds kLong{30};

/// Something that happens at a time of its own.
struct Happening {
  Happening(EventQueue& queue, milliseconds from_now, std::function<void()> done)
      : handler([done = std::move(done)](bool) { done(); }) {
    alarm.Set(queue.grpc_queue(), std::chrono::system_clock::now() + from_now, &handler);
  }
  EventHandler handler;
  grpc::Alarm alarm;
};

}  // namespace

TEST_CASE("whoever waits handles what happens, for others too, and another goes on when it leaves") {
  EventQueue queue([] {});
  EventQueue::Waiter first, second;
  std::promise<std::thread::id> handled_by;
  Happening one(queue, milliseconds(300), [&] {
    handled_by.set_value(std::this_thread::get_id());
    queue.finish(first);
  });
  Happening two(queue, milliseconds(600), [&] { queue.finish(second); });
  auto other = std::async(std::launch::async, [&] { return queue.wait(second, Clock::now() + kLong); });
  CHECK(queue.wait(first, Clock::now() + kLong));
  CHECK(other.get());
  CHECK(handled_by.get_future().get() != std::thread::id());
}

TEST_CASE("a wait ends at its deadline, and a waiter can be waited for again") {
  EventQueue queue([] {});
  EventQueue::Waiter waiter;
  CHECK_FALSE(queue.wait(waiter, Clock::now() + milliseconds(30)));
  queue.finish(waiter);
  CHECK(queue.wait(waiter, Clock::now()));
  queue.reset(waiter);
  CHECK_FALSE(queue.wait(waiter, Clock::now()));
}

TEST_CASE("the thread that waits handles events itself") {
  EventQueue queue([] {});
  EventQueue::Waiter waiter;
  std::atomic<int> own = 0;
  std::vector<std::unique_ptr<Happening>> happenings;
  const auto self = std::this_thread::get_id();
  for (int i = 1; i <= 20; ++i)
    happenings.push_back(std::make_unique<Happening>(queue, milliseconds(i * 10), [&, i] {
      own += std::this_thread::get_id() == self ? 1 : 0;
      if (i == 20) queue.finish(waiter);
    }));
  CHECK(queue.wait(waiter, Clock::now() + kLong));
  CHECK(own >= 19);  // the queue's own thread may have been there at the start
}

TEST_CASE("what happens while nobody waits is handled by the queue itself, and ticks come") {
  std::promise<void> ticked, handled;
  std::atomic<bool> told = false;
  EventQueue queue([&] {
    if (!told.exchange(true)) ticked.set_value();
  });
  Happening one(queue, milliseconds(0), [&] { handled.set_value(); });
  CHECK(handled.get_future().wait_for(kLong) == std::future_status::ready);
  CHECK(ticked.get_future().wait_for(kLong) == std::future_status::ready);
}

TEST_CASE("what is still to come when a queue ends is handled") {
  bool handled = false;
  auto queue = std::make_unique<EventQueue>([] {});
  Happening late(*queue, std::chrono::hours(1), [&] { handled = true; });
  late.alarm.Cancel();
  queue.reset();
  CHECK(handled);
}
