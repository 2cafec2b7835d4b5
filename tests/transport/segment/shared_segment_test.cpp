#include "transport/segment/shared_segment.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/transport/test_processes.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("another process reads what was written, where it was written, also after the writer was killed") {
  SharedKvStore store;
  const int writer = fork_child([&] {
    const auto segment = SharedSegment::create(1 << 20, 1 << 20).value();
    const auto slab = segment->take(70000);
    std::memset(slab->data, 7, 70000);
    (void)store.set("place", std::to_string(*segment->offset_of(slab->data)));
    (void)store.set("ticket", segment->ticket());
    (void)store.get("opened", 20s);
    ::kill(getpid(), SIGKILL);
    return 0;
  });
  const auto view = SegmentView::open(store.get("ticket", 20s).value());
  REQUIRE(store.set("opened", "1").ok());
  REQUIRE(view.ok());
  CHECK(wait_for_exit(writer) == -SIGKILL);
  const auto* data = (*view)->at(std::stoull(store.get("place", 1s).value()), 70000);
  REQUIRE(data != nullptr);
  for (size_t i = 0; i < 70000; ++i) REQUIRE(data[i] == std::byte{7});
}

TEST_CASE("places outside the segment, and tickets of another boot, process or segment, are refused") {
  const auto segment = SharedSegment::create(1 << 20, 1 << 20).value();
  const std::string ticket = segment->ticket();
  const auto view = SegmentView::open(ticket).value();
  CHECK(view->at(4096, 1 << 20) != nullptr);
  CHECK(view->at(4097, 1 << 20) == nullptr);
  CHECK(view->at(0, 8) == nullptr);
  CHECK(view->at(~size_t{0}, 8) == nullptr);
  CHECK_FALSE(SegmentView::open("-").ok());
  CHECK_FALSE(SegmentView::open("x" + ticket).ok());
  std::string other = ticket;
  other.back() = other.back() == '1' ? '2' : '1';  // the number that the first page holds
  CHECK(SegmentView::open(other).error().message.find("another process's") != std::string::npos);
}

TEST_CASE("a segment that is used up has nothing to give until something comes back, of whatever size") {
  const auto segment = SharedSegment::create(1 << 20, 1 << 20).value();
  auto large = segment->take(600 << 10);
  REQUIRE(large.has_value());
  CHECK_FALSE(segment->take(600 << 10).has_value());
  large.reset();
  CHECK(segment->take(1000 << 10).has_value());
}
