#include "transport/channel/inbox.h"

#include <catch2/catch.hpp>

#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {
const SlotId kPeer(4);
}

TEST_CASE("a complete message of a peer that was lost afterwards is still given out, an incomplete one is not") {
  Inbox inbox(SlotId(1));
  REQUIRE(inbox.admit(kPeer, numbered_tag(1), header_of(8)).wanted);
  inbox.complete(kPeer, numbered_tag(1), patterned(8, 1));
  REQUIRE(inbox.admit(kPeer, numbered_tag(2), header_of(8)).wanted);
  inbox.lose(kPeer, "exit status 9");
  CHECK(inbox.receive(kPeer, numbered_tag(1), header_of(8), 0ms).ok());
  const auto second = inbox.receive(kPeer, numbered_tag(2), header_of(8), 0ms);
  CHECK(second.error().code == ErrorCode::kUnavailable);
  CHECK(second.error().message.find("exit status 9") != std::string::npos);
}

TEST_CASE("bytes land where they were announced to") {
  Inbox inbox(SlotId(1));
  const Payload landing = patterned(8, 1);
  REQUIRE(inbox.expect(kPeer, numbered_tag(1), landing).ok());
  CHECK(inbox.admit(kPeer, numbered_tag(1), header_of(8)).landing.data == landing.data);
  CHECK(inbox.admit(kPeer, numbered_tag(2), header_of(8)).landing.data == nullptr);
}

TEST_CASE("a message sent twice is taken once") {
  Inbox inbox(SlotId(1));
  CHECK(inbox.admit(kPeer, numbered_tag(1), header_of(8)).wanted);
  CHECK_FALSE(inbox.admit(kPeer, numbered_tag(1), header_of(8)).wanted);
  CHECK(inbox.counters().stale_dropped == 1);
}

TEST_CASE("a transfer that fails ends its receive with the transfer's own error") {
  Inbox inbox(SlotId(1));
  REQUIRE(inbox.admit(kPeer, numbered_tag(1), header_of(8)).wanted);
  inbox.fail(kPeer, numbered_tag(1), unavailable("connection reset"));
  CHECK(inbox.receive(kPeer, numbered_tag(1), header_of(8), 0ms).error().message == "connection reset");
}

TEST_CASE("a message that was arriving when its generation ended is dropped when it is complete") {
  Inbox inbox(SlotId(1));
  REQUIRE(inbox.admit(kPeer, numbered_tag(1, 1), header_of(8)).wanted);
  REQUIRE(inbox.expect(kPeer, numbered_tag(1, 2), {}).ok());
  Payload payload = patterned(8, 1);
  const std::weak_ptr<const void> owner = payload.owner;
  inbox.complete(kPeer, numbered_tag(1, 1), std::move(payload));
  CHECK(owner.expired());
  CHECK(inbox.counters().stale_dropped == 1);
}
