#include "transport/channel/send_gate.h"

#include <catch2/catch.hpp>

#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

void put(SendGate& gate, int64_t number, size_t bytes) {
  Payload payload;
  payload.bytes = bytes;
  gate.push({WireHeader::of(SlotId(0), numbered_tag(number), header_of(bytes), bytes), payload});
}

}  // namespace

TEST_CASE("messages leave in order while they fit the credit, and go on when tickets come back") {
  SendGate gate(1000);
  for (int i = 0; i < 4; ++i) put(gate, i, 400);
  const auto first = gate.next();
  REQUIRE(first.has_value());
  CHECK((first->header.tag() == numbered_tag(0)));
  const auto second = gate.next();
  REQUIRE(second.has_value());
  CHECK_FALSE(gate.next().has_value());
  CHECK(gate.waits() == 3);  // put in while an earlier one had not left, or without credit
  gate.retire(second->header.ticket);
  gate.retire(second->header.ticket);
  CHECK(gate.outstanding_bytes() == 400);
  CHECK((gate.next()->header.tag() == numbered_tag(2)));
  CHECK_FALSE(gate.next().has_value());
}

TEST_CASE("a message larger than the credit passes when it is alone") {
  SendGate gate(1000);
  put(gate, 0, 200);
  put(gate, 1, 5000);
  put(gate, 2, 200);
  const auto small = gate.next();
  CHECK_FALSE(gate.next().has_value());
  gate.retire(small->header.ticket);
  const auto large = gate.next();
  REQUIRE(large.has_value());
  CHECK(large->payload.bytes == 5000);
  CHECK_FALSE(gate.next().has_value());
  gate.retire(large->header.ticket);
  CHECK(gate.next().has_value());
}

TEST_CASE("a message that the receiver waits for passes at once, put in before or after the wish") {
  SendGate gate(1000);
  put(gate, 0, 1000);
  put(gate, 1, 1000);
  put(gate, 2, 1000);
  CHECK(gate.next().has_value());
  gate.want(numbered_tag(2));
  gate.want(numbered_tag(3));
  CHECK((gate.next()->header.tag() == numbered_tag(2)));
  CHECK_FALSE(gate.next().has_value());
  put(gate, 3, 1000);
  CHECK((gate.next()->header.tag() == numbered_tag(3)));
  CHECK_FALSE(gate.next().has_value());
}

TEST_CASE("memory is held until its ticket is back, or handed over when all is forgotten") {
  SendGate gate(1000);
  put(gate, 0, 10);
  put(gate, 1, 10);
  put(gate, 2, 10);
  auto memory = std::make_shared<int>(1);
  const auto first = gate.next(), second = gate.next();
  gate.hold(first->header.ticket, memory);
  gate.hold(second->header.ticket, memory);
  CHECK(memory.use_count() == 3);
  gate.retire(first->header.ticket);
  CHECK(memory.use_count() == 2);
  std::vector<std::shared_ptr<const void>> held;
  CHECK(gate.clear(held).size() == 1);
  CHECK(held.size() == 1);
  CHECK(gate.outstanding_bytes() == 0);
}

TEST_CASE("wishes that came too late do not crowd out new ones") {
  SendGate gate(1000);
  for (int i = 0; i < 5000; ++i) gate.want(numbered_tag(i));
  put(gate, 6000, 1000);
  CHECK(gate.next().has_value());
  gate.want(numbered_tag(6001));
  put(gate, 6001, 1000);
  CHECK(gate.next().has_value());
}
