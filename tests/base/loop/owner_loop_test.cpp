#include "base/loop/owner_loop.h"

#include <catch2/catch.hpp>
#include <vector>

using troupe::OwnerLoop;
using std::chrono::milliseconds;

TEST_CASE("Tasks run in the order of posting, on one thread") {
  OwnerLoop loop;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) loop.post([&order, i] { order.push_back(i); });
  CHECK(loop.ask([&] { return loop.on_loop() && order.size() == 100 && order.front() == 0 && order.back() == 99; }));
  CHECK_FALSE(loop.on_loop());
}

TEST_CASE("Timers run when due, the earlier first, whatever the order of posting") {
  OwnerLoop loop;
  const auto now = OwnerLoop::Clock::now();
  std::vector<int> order;
  std::promise<void> done;
  loop.post_at(now + milliseconds(40), [&] {
    order.push_back(2);
    done.set_value();
  });
  loop.post_at(now + milliseconds(10), [&] { order.push_back(1); });
  done.get_future().wait();
  CHECK(OwnerLoop::Clock::now() >= now + milliseconds(40));
  CHECK(loop.ask([&] { return order == std::vector<int>{1, 2}; }));
}

TEST_CASE("Finishing runs what was posted, drops timers that are not due and takes nothing more") {
  OwnerLoop loop;
  int ran = 0;
  loop.post_at(OwnerLoop::Clock::now() + std::chrono::hours(1), [&] { ran += 100; });
  loop.post([&] { ++ran; });
  loop.finish();
  loop.post([&] { ran += 10; });
  CHECK(ran == 1);
}
