#include "transport/channel/releases.h"

#include <catch2/catch.hpp>

#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr SlotId kSender{4};

std::vector<uint64_t> due(Releases& releases) {
  std::vector<uint64_t> tickets;
  releases.take_due(kSender, 100, tickets);
  return tickets;
}

}  // namespace

TEST_CASE("tickets come back together once they are worth a message") {
  int woken = 0;
  const auto releases = Releases::create(1000, [&] { ++woken; });
  for (uint64_t ticket = 1; ticket <= 2; ++ticket) {
    (void)releases->track(kSender, ticket, patterned(400, 1));
    CHECK(due(*releases).empty());
  }
  CHECK(woken == 0);
  (void)releases->track(kSender, 3, patterned(400, 1));
  CHECK(woken == 1);
  CHECK(due(*releases) == std::vector<uint64_t>{1, 2, 3});
  CHECK(due(*releases).empty());
}

TEST_CASE("a stalled sender gets each ticket at once until it has all of them") {
  const auto releases = Releases::create(1000, [] {});
  Payload first = releases->track(kSender, 1, patterned(10, 1)), second = releases->track(kSender, 2, patterned(10, 1));
  releases->stalled(kSender);
  first = {};
  CHECK(due(*releases) == std::vector<uint64_t>{1});
  second = {};
  CHECK(due(*releases) == std::vector<uint64_t>{2});
  (void)releases->track(kSender, 3, patterned(10, 1));
  CHECK(due(*releases).empty());
}

TEST_CASE("what is held is counted, with its peak, and payloads outlive the channel's end") {
  const auto releases = Releases::create(10, [] {});
  Payload first = releases->track(kSender, 1, patterned(100, 1)),
          second = releases->track(kSender, 2, patterned(50, 2));
  first = {};
  ChannelCounters counters;
  releases->count(counters);
  CHECK(counters.held_bytes == 50);
  CHECK(counters.peak_held_bytes == 150);
  releases->forget(kSender);
  releases->close();
  CHECK(matches(second, 50, 2));
  second = {};
  CHECK(due(*releases).empty());
}
