#include "transport/channel/wire_header.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("the wire header carries the whole tag, the header, the sender and the size") {
  MessageTag tag;
  tag.generation = 4000000001u;
  tag.edge = 2;
  tag.attempt = 3;
  tag.step = int64_t{1} << 40;
  tag.producer_unit = 5;
  tag.consumer_unit = -6;
  tag.from_rank = 7;
  tag.to_rank = 8;
  tag.backward = true;
  const MessageHeader header{9, 10, 11, 12};
  const WireHeader wire = WireHeader::of(SlotId(13), tag, header, 90);
  CHECK((wire.tag() == tag));
  CHECK(wire.header().rows == 9);
  CHECK(wire.header().row_bytes == 10);
  CHECK(wire.header().samples_digest == 11);
  CHECK(wire.header().plan_digest == 12);
  CHECK(wire.from_slot == 13);
  CHECK(wire.bytes == 90);
}
