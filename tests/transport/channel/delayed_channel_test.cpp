#include "transport/channel/delayed_channel.h"

#include <catch2/catch.hpp>

#include "base/rendezvous/memory_kv_store.h"
#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a channel with random delays keeps the channel contract") {
  run_channel_contract([](size_t) {
    std::shared_ptr<Channel> channel = create_delayed_channel(create_in_process_channel(), {5, 2000us});
    MemoryKvStore store;
    REQUIRE(channel->connect({SlotId(3)}, store, 1s).ok());
    return ChannelPair{channel.get(), channel.get(), SlotId(3), SlotId(3), channel};
  });
}

TEST_CASE("delayed messages overtake each other and all arrive") {
  const auto channel = create_delayed_channel(create_in_process_channel(), {7, 20000us});
  MemoryKvStore store;
  REQUIRE(channel->connect({SlotId(0)}, store, 1s).ok());
  for (int i = 0; i < 50; ++i) REQUIRE(channel->send(SlotId(0), numbered_tag(i), header_of(8), patterned(8, i)).ok());
  for (int i = 49; i >= 0; --i) REQUIRE(channel->receive(SlotId(0), numbered_tag(i), header_of(8), 5s).ok());
  REQUIRE(channel->flush(5s).ok());
  CHECK(channel->counters().messages_received == 50);
}

TEST_CASE("flush of a delayed channel waits for what is still to leave, within its deadline") {
  const auto channel = create_delayed_channel(create_in_process_channel(), {1, 3600000000us});
  MemoryKvStore store;
  REQUIRE(channel->connect({SlotId(0)}, store, 1s).ok());
  REQUIRE(channel->send(SlotId(0), numbered_tag(1), header_of(8), patterned(8, 1)).ok());
  CHECK(channel->flush(20ms).error().code == ErrorCode::kDeadlineExceeded);
}
