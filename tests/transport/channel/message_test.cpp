#include "transport/channel/message.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("a tag reads as edge, step, units, ranks, direction and generation") {
  MessageTag tag;
  tag.step = 3;
  tag.producer_unit = 1;
  tag.from_rank = 2;
  tag.to_rank = 1;
  tag.generation = 5;
  CHECK(tag.to_string() == "edge 0 step 3 units 1->0 ranks 2->1 forward generation 5");
  tag.attempt = 2;
  tag.backward = true;
  CHECK(tag.to_string() == "edge 0 step 3 attempt 2 units 1->0 ranks 2->1 backward generation 5");
}

TEST_CASE("headers agree only when rows, sizes, digests and bytes do") {
  const MessageHeader header{2, 8, 1, 1};
  CHECK(check_header(SlotId(0), SlotId(1), {}, header, 16, header).ok());
  CHECK_FALSE(check_header(SlotId(0), SlotId(1), {}, header, 15, header).ok());
  CHECK_FALSE(check_header(SlotId(0), SlotId(1), {}, header, 16, {4, 4, 1, 1}).ok());
}
