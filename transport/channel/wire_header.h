#pragma once

#include <cstdint>
#include <type_traits>

#include "transport/channel/channel.h"

namespace troupe {

/// What a wire message is.
enum class WireKind : uint32_t {
  kMessage = 1,  // the payload follows
  kSegment,      // the payload lies at `place` in the sender's shared segment
  kRelease,      // tickets follow, 8 bytes each: the receiver has let go of these messages
  kStalled,      // the sender waits for tickets
  kWant,         // the receiver waits for the message with this tag
  kHello,        // the first message to a peer, behind what the transport says to connect
};

/// What goes in front of every message's bytes, in the memory form of the machine: both ends run the same build on one
/// architecture.
struct WireHeader {
  static constexpr uint32_t kMagic = 0x54527032;  // also tells a foreign byte order
  uint32_t magic = kMagic;
  WireKind kind = WireKind::kMessage;
  int32_t from_slot = 0;
  uint32_t generation = 0, edge = 0, attempt = 0;
  int32_t producer_unit = 0, consumer_unit = 0, from_rank = 0, to_rank = 0;
  uint32_t backward = 0, reserved = 0;
  int64_t step = 0;
  int64_t rows = 0, row_bytes = 0;
  uint64_t samples_digest = 0, plan_digest = 0, bytes = 0;
  uint64_t ticket = 0;  // numbers the messages to one peer; comes back when the receiver has let go of the message
  uint64_t place = 0;

  static WireHeader of(SlotId from, const MessageTag& tag, const MessageHeader& header, size_t bytes);
  MessageTag tag() const;
  MessageHeader header() const { return {rows, row_bytes, samples_digest, plan_digest}; }
};
static_assert(std::is_trivially_copyable_v<WireHeader> && sizeof(WireHeader) == 112);

inline WireHeader WireHeader::of(SlotId from, const MessageTag& tag, const MessageHeader& header, size_t bytes) {
  WireHeader wire;
  wire.from_slot = from.value;
  wire.generation = tag.generation;
  wire.edge = tag.edge;
  wire.attempt = tag.attempt;
  wire.producer_unit = tag.producer_unit;
  wire.consumer_unit = tag.consumer_unit;
  wire.from_rank = tag.from_rank;
  wire.to_rank = tag.to_rank;
  wire.backward = tag.backward ? 1 : 0;
  wire.step = tag.step;
  wire.rows = header.rows;
  wire.row_bytes = header.row_bytes;
  wire.samples_digest = header.samples_digest;
  wire.plan_digest = header.plan_digest;
  wire.bytes = bytes;
  return wire;
}

inline MessageTag WireHeader::tag() const {
  MessageTag tag;
  tag.generation = generation;
  tag.edge = edge;
  tag.attempt = attempt;
  tag.step = step;
  tag.producer_unit = producer_unit;
  tag.consumer_unit = consumer_unit;
  tag.from_rank = from_rank;
  tag.to_rank = to_rank;
  tag.backward = backward != 0;
  return tag;
}

}  // namespace troupe
