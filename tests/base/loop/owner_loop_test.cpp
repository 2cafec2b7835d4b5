#include "base/loop/owner_loop.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using std::chrono::milliseconds;
using troupe::OwnerLoop;

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

TEST_CASE("A question that comes after the end is answered on the caller instead of being waited for") {
  OwnerLoop loop;
  int value = 0;
  loop.post([&] { value = 7; });
  loop.finish();
  CHECK_FALSE(loop.post([&] { value = 8; }));
  CHECK(loop.ask([&] { return value; }) == 7);
}

TEST_CASE("Questions that race with the end are all answered") {
  for (int round = 0; round < 50; ++round) {
    OwnerLoop loop;
    int answers = 0;
    std::vector<std::thread> askers;
    for (int i = 0; i < 4; ++i)
      askers.emplace_back([&] {
        for (int k = 0; k < 20; ++k) loop.ask([&] { ++answers; });
      });
    loop.finish();
    for (std::thread& asker : askers) asker.join();
    CHECK(answers == 80);
  }
}
