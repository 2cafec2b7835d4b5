#pragma once

#include "transport/ucx/ucx_loop.h"

/// The parts of UcxLoop that its source files share.
namespace troupe {

inline constexpr unsigned kMessageId = 1;
/// From this size on a payload crosses in the shared segment; below it the message itself carries it.
inline constexpr size_t kSegmentFrom = 8192;
/// Tickets in one release: small enough to travel at once.
inline constexpr size_t kTicketsAtOnce = 128;

struct UcxLoop::Peer {
  Peer(UcxLoop* owner, SlotId peer_slot, size_t credit_bytes) : loop(owner), slot(peer_slot), gate(credit_bytes) {}
  ~Peer();
  UcxLoop* const loop;
  const SlotId slot;
  ucp_ep_h endpoint = nullptr;                 // null when closed
  int process = -1;                            // descriptor of the peer's process on this node
  std::shared_ptr<const SegmentView> segment;  // of the peer; null when it cannot be read from here
  std::atomic<bool> reads_ours{false};
  SendGate gate;
  int under_way = 0;  // messages of the user's that UCX has; nobody waits for those of a closed endpoint
  // Connecting: it has answered; its hello has come; what was sent to it before that has left.
  bool connected = false, greeted = false, settled = false;
  bool stall_told = false, to_pump = false;
  std::string failure;  // why it is to be closed
  std::vector<uint64_t> tickets;
};

struct UcxLoop::SendOp {
  Peer* peer = nullptr;
  WireHeader header;
  Payload payload;
  std::vector<uint64_t> tickets;
  bool counted = false;  // a message of the user's, not of the channel's own
};

struct UcxLoop::ReceiveOp {
  UcxLoop* loop = nullptr;
  WireHeader header;
  Payload landing;
};

}  // namespace troupe
