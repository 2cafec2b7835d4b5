#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/rendezvous/kv_store.h"
#include "base/result.h"

/// Boundary channels: how a slot hands messages to other slots. One interface over in-process hand-over, UCX and NCCL.
namespace troupe {

/// Names one message for good: no two messages of a job have the same tag.
struct MessageTag {
  uint32_t generation = 0, edge = 0, attempt = 0;
  int64_t step = 0;
  int32_t producer_unit = 0, consumer_unit = 0;  // units of the edge's two groups
  int32_t from_rank = 0, to_rank = 0;            // ranks in the sending and the receiving group
  bool backward = false;
  auto operator<=>(const MessageTag&) const = default;
  /// "edge 0 step 3 units 1->0 ranks 2->1 forward"
  std::string to_string() const;
};

/// Travels with every message; the receiver states what it expects, and a difference is an error that names both sides.
struct MessageHeader {
  int64_t rows = 0;
  int64_t row_bytes = 0;
  uint64_t samples_digest = 0;  // of the sample ids and row numbers that the rows belong to
  uint64_t plan_digest = 0;     // of the sender's reshard plan
};

/// Bytes with a lifetime: `data` is valid while `owner` lives. Sent payloads are not written to by the sender while the
/// channel or the receiver holds `owner`. `object` is set only by in-process hand-over: the sender's own object (a
/// tensor), so that nothing is copied.
struct Payload {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> owner;
  std::shared_ptr<const void> object;
};

struct ChannelCounters {
  uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0, stale_dropped = 0;
  uint64_t bytes_copied = 0;  // of payloads, by the channel itself on this side (a transport's own copies not counted)
  uint64_t credit_waits = 0;  // messages that waited on this side until the receiver had let go of others
  uint64_t held_bytes = 0;    // arrived here and not let go of yet
  uint64_t peak_held_bytes = 0;  // the most of them at any time
  uint64_t allocations = 0;      // buffers asked of the system: stands still in a steady state
};

/// Memory to pack a message into; `data` null: the channel has none to give, any memory of the process will do.
struct SendBuffer {
  std::byte* data = nullptr;
  std::shared_ptr<const void> owner;
};

/// The endpoint of this slot towards the peers of one kind. Destroyed only after all peers have flushed: a transport
/// may still be reading what they were sent. `send` and `post_receive` never block on the peer; thread-safe. The owner
/// of a payload may be let go of on any thread and must not call the channel.
///
/// Memory is bounded by credits: what one peer has sent and the receiver has not let go of stays within `credit_bytes`
/// (a larger message passes alone); further messages stay with their sender, as references to its payloads, in order. A
/// message that a receiver is waiting for passes at once, so that no order of receives can stand still for want of
/// credits.
class Channel {
 public:
  virtual ~Channel() = default;
  /// True when a payload's `object` arrives as it was sent and no byte is copied.
  virtual bool in_process() const = 0;
  /// Connects to the peers (slots that this one exchanges messages with). Called once, before any message.
  virtual Status connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) = 0;
  /// Memory for a message of `bytes` to `to` that send() will not copy. Optional; used once, then passed on as a
  /// payload.
  virtual SendBuffer buffer_for(SlotId to, size_t bytes);
  virtual Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) = 0;
  /// Announces a receive ahead of time, so that the bytes can land as soon as they are sent. Optional.
  virtual Status post_receive(SlotId from, const MessageTag& tag, size_t bytes) = 0;
  /// Waits for the message. DeadlineExceeded and Unavailable name the peer; DataLoss names what differs from
  /// `expected`, on both sides.
  virtual Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                                  std::chrono::milliseconds timeout) = 0;
  /// Waits until everything sent has left this process's buffers.
  virtual Status flush(std::chrono::milliseconds timeout) = 0;
  /// Control-plane notice that a peer is gone: its waits end with Unavailable within 1 s. From any thread.
  virtual void peer_lost(SlotId peer) = 0;
  /// From any thread: every wait ends with kAborted.
  virtual void abort() = 0;
  virtual ChannelCounters counters() const = 0;
};

/// Hand-over inside one process: sender and receiver are the same slot (colocated actors).
std::unique_ptr<Channel> create_in_process_channel();

struct UcxChannelOptions {
  std::string name;  // key prefix in the store: job and generation
  SlotId self;
  std::string interface_address;  // restricts TCP to the device that owns this address; empty: UCX decides
  std::string transports{};       // UCX's list, such as "tcp"; empty: all that it finds
  bool shared_segment = true;     // between processes of one node, payloads lie in memory that the reader maps
  size_t credit_bytes = size_t{256} << 20;  // towards each peer
};
Result<std::unique_ptr<Channel>> create_ucx_channel(const UcxChannelOptions& options);

}  // namespace troupe
