#include "transport/channel/channel.h"

#include <catch2/catch.hpp>
#include <thread>

#include "base/rendezvous/memory_kv_store.h"
#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

struct Ends {
  std::unique_ptr<Channel> a, b;
};

ChannelPair make_pair(UcxChannelOptions options = {}, size_t credit_bytes = 0) {
  auto ends = std::make_shared<Ends>();
  MemoryKvStore store;
  options.name = "job/g1";
  if (credit_bytes > 0) options.credit_bytes = credit_bytes;
  options.self = SlotId(0);
  ends->a = create_ucx_channel(options).value();
  options.self = SlotId(1);
  ends->b = create_ucx_channel(options).value();
  Status connected_a;
  std::thread other([&] { connected_a = ends->a->connect({SlotId(1)}, store, 20s); });
  const Status connected_b = ends->b->connect({SlotId(0)}, store, 20s);
  other.join();
  REQUIRE(connected_a.ok());
  REQUIRE(connected_b.ok());
  return {ends->a.get(), ends->b.get(), SlotId(0), SlotId(1), ends};
}

UcxChannelOptions without_segment(const std::string& transports) {
  UcxChannelOptions options;
  options.transports = transports;
  options.shared_segment = false;
  return options;
}

ChannelFactory factory(const UcxChannelOptions& options) {
  return [options](size_t credit_bytes) { return make_pair(options, credit_bytes); };
}

}  // namespace

TEST_CASE("the shared segment keeps the channel contract") { run_channel_contract(factory({})); }
TEST_CASE("the shared segment keeps to its credit") { run_credit_contract(factory({})); }
TEST_CASE("UCX over shared memory keeps the channel contract") {
  run_channel_contract(factory(without_segment("posix")));
}
TEST_CASE("UCX over shared memory keeps to its credit") { run_credit_contract(factory(without_segment("posix"))); }
TEST_CASE("UCX over TCP keeps the channel contract") { run_channel_contract(factory(without_segment("tcp"))); }
TEST_CASE("UCX over TCP keeps to its credit") { run_credit_contract(factory(without_segment("tcp"))); }

TEST_CASE("UCX bound to the loopback device keeps the channel contract") {
  UcxChannelOptions options;
  options.interface_address = "127.0.0.1";
  run_channel_contract(factory(options));
}

TEST_CASE("an address that no device has is refused by name") {
  const auto channel = create_ucx_channel({"job/g1", SlotId(0), "203.0.113.7"});
  REQUIRE_FALSE(channel.ok());
  CHECK(channel.error().message.find("203.0.113.7") != std::string::npos);
}

TEST_CASE("a peer that never comes is named by connect") {
  MemoryKvStore store;
  const auto channel = create_ucx_channel({"job/g1", SlotId(0), ""}).value();
  const Status connected = channel->connect({SlotId(9)}, store, 50ms);
  REQUIRE_FALSE(connected.ok());
  CHECK(connected.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(connected.error().to_string().find("slot 9") != std::string::npos);
}

TEST_CASE("a slot that was not connected to is refused as a destination") {
  const ChannelPair pair = make_pair();
  CHECK(pair.a->send(SlotId(7), numbered_tag(1), header_of(8), patterned(8, 1)).error().code ==
        ErrorCode::kFailedPrecondition);
}

TEST_CASE("received bytes stay valid after their channel has gone") {
  Payload kept;
  {
    const ChannelPair pair = make_pair();
    REQUIRE(pair.a->send(pair.slot_b, numbered_tag(1), header_of(100000), patterned(100000, 5)).ok());
    kept = pair.b->receive(pair.slot_a, numbered_tag(1), header_of(100000), 20s).value();
  }
  CHECK(matches(kept, 100000, 5));
}
