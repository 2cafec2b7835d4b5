#include <catch2/catch.hpp>

#include "base/rendezvous/memory_kv_store.h"
#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("in-process hand-over keeps the channel contract") {
  run_channel_contract([](size_t) {
    std::shared_ptr<Channel> channel = create_in_process_channel();
    MemoryKvStore store;
    REQUIRE(channel->connect({SlotId(3)}, store, 1s).ok());
    return ChannelPair{channel.get(), channel.get(), SlotId(3), SlotId(3), channel};
  });
}

TEST_CASE("in-process hand-over moves the sender's object and bytes, not a copy") {
  const auto channel = create_in_process_channel();
  CHECK(channel->in_process());
  Payload payload = patterned(1000, 1);
  payload.object = std::make_shared<int>(42);
  const void* object = payload.object.get();
  const std::byte* data = payload.data;
  REQUIRE(channel->send(SlotId(0), numbered_tag(1), header_of(1000), std::move(payload)).ok());
  const auto received = channel->receive(SlotId(0), numbered_tag(1), header_of(1000), 1s).value();
  CHECK(received.object.get() == object);
  CHECK(received.data == data);
  CHECK(channel->counters().bytes_copied == 0);
}

TEST_CASE("in-process hand-over has no other slot to connect to") {
  MemoryKvStore store;
  CHECK(create_in_process_channel()->connect({SlotId(0), SlotId(1)}, store, 1s).error().code ==
        ErrorCode::kInvalidArgument);
}
