#include <cstring>

#include "transport/channel/message.h"
#include "transport/segment/large_copy.h"
#include "transport/ucx/ucx_peer.h"

namespace troupe {
namespace {

/// A thread that only sends looks this often at what comes in: a system call for each message costs a tenth of the rate
/// at 64 KiB over TCP. Less than what the background thread waits before it steps in.
constexpr std::chrono::microseconds kSendsProgress{75};

}  // namespace

SendBuffer UcxLoop::buffer_for(SlotId to, size_t bytes) {
  const Peer* peer = find(to);
  if (peer == nullptr || !peer->reads_ours.load() || bytes < kSegmentFrom) return {};
  auto slab = segment_->take(bytes);
  if (!slab) return {};
  return {slab->data, std::move(slab->owner)};
}

/// A message that will leave at once is copied into the segment here, outside the lock.
Status UcxLoop::send(SlotId to, WireHeader header, Payload payload) {
  Peer* peer = find(to);
  if (peer == nullptr) {
    return make_error(ErrorCode::kFailedPrecondition, "slot " + std::to_string(options_.self.value) +
                                                          " is not connected to slot " + std::to_string(to.value) +
                                                          ": " + header.tag().to_string());
  }
  const size_t bytes = payload.bytes;
  const bool maps = peer->reads_ours.load();
  const bool shares = maps && bytes >= kSegmentFrom && !segment_->offset_of(payload.data);
  std::unique_lock lock(mutex_);
  if (shares && peer->gate.open_for(bytes)) {
    lock.unlock();
    share(payload);
    lock.lock();
  }
  if (peer->endpoint == nullptr) return peer_is_lost(to, options_.self, header.tag(), peer->failure);
  sent_.sent(bytes);
  pending_.fetch_add(1);
  peer->gate.push({header, std::move(payload)});
  pump_locked(*peer);
  // What was copied and has left needs no progress, and what comes in is looked at often enough. A peer that maps our
  // memory gives it back by messages: those are taken at once.
  const bool gone = pending_.load() == 0 && !maps && !errors_;
  if (gone && since_progress() < kSendsProgress) return {};
  if (progress_locked()) driver_.wake();
  if (gone) last_drive_.store(now_ns());
  return {};
}

/// Moves the payload into the shared segment, if there is room.
void UcxLoop::share(Payload& payload) {
  auto slab = segment_->take(payload.bytes);
  if (!slab) return;
  copy_to_reader(slab->data, payload.data, payload.bytes);
  sent_.copied(payload.bytes);
  payload = {slab->data, payload.bytes, std::move(slab->owner), nullptr};
}

bool UcxLoop::pump_locked(Peer& peer) {
  bool any = false;
  peer.to_pump = false;
  while (peer.endpoint != nullptr) {
    auto item = peer.gate.next();
    if (!item) break;
    any = true;
    start_locked(peer, std::move(*item));
  }
  if (peer.gate.queued() == 0) {
    peer.stall_told = false;
  } else if (!peer.stall_told && peer.endpoint != nullptr) {
    peer.stall_told = true;
    tell_locked(peer, WireKind::kStalled, {}, nullptr);
  }
  return any;
}

UcxLoop::SendOp* UcxLoop::send_op_locked() {
  if (free_sends_.empty()) return sends_.emplace_back(std::make_unique<SendOp>()).get();
  SendOp* op = free_sends_.back();
  free_sends_.pop_back();
  return op;
}

void UcxLoop::start_locked(Peer& peer, SendGate::Item item) {
  SendOp* op = send_op_locked();
  op->header = item.header;
  op->payload = std::move(item.payload);
  op->counted = true;
  if (peer.reads_ours.load() && op->payload.bytes >= kSegmentFrom) {
    if (!segment_->offset_of(op->payload.data)) share(op->payload);
    if (const auto place = segment_->offset_of(op->payload.data)) {
      op->header.kind = WireKind::kSegment;
      op->header.place = *place;
      peer.gate.hold(op->header.ticket, std::move(op->payload.owner));
      op->payload = {};
    }
  }
  post_locked(peer, op);
}

/// A message of the channel's own. `tickets` is emptied; its memory stays with the operation for the next time.
void UcxLoop::tell_locked(Peer& peer, WireKind kind, const MessageTag& tag, std::vector<uint64_t>* tickets) {
  SendOp* op = send_op_locked();
  op->header = WireHeader::of(options_.self, tag, {}, 0);
  op->header.kind = kind;
  op->counted = false;
  if (tickets != nullptr) {
    op->tickets.swap(*tickets);
    tickets->clear();
    op->header.bytes = op->tickets.size() * sizeof(uint64_t);
    op->payload = {reinterpret_cast<const std::byte*>(op->tickets.data()), op->header.bytes, nullptr, nullptr};
  }
  post_locked(peer, op);
}

void UcxLoop::post_locked(Peer& peer, SendOp* op) {
  op->peer = &peer;
  if (op->counted) ++peer.under_way;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxLoop::on_sent;
  param.user_data = op;
  if (op->header.kind == WireKind::kHello) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_REPLY;
  }
  void* request = ucp_am_send_nbx(peer.endpoint, kMessageId, &op->header, sizeof op->header, op->payload.data,
                                  op->payload.bytes, &param);
  if (!UCS_PTR_IS_PTR(request)) end_send(op, UCS_PTR_STATUS(request));
}

void UcxLoop::on_sent(void* request, ucs_status_t status, void* argument) {
  auto* op = static_cast<SendOp*>(argument);
  UcxLoop* loop = op->peer->loop;
  ucp_request_free(request);
  loop->end_send(op, status);
}

void UcxLoop::end_send(SendOp* op, ucs_status_t status) {
  Peer& peer = *op->peer;
  if (op->counted && peer.endpoint != nullptr) {
    --peer.under_way;
    pending_.fetch_sub(1);
  }
  if (status != UCS_OK && status != UCS_ERR_CANCELED) fail_locked(peer, ucs_status_string(status));
  // The peer may still be reading what was cut off.
  if (status != UCS_OK && op->payload.owner) cut_off_.push_back(std::move(op->payload.owner));
  op->payload = {};
  op->tickets.clear();
  free_sends_.push_back(op);
}

ucs_status_t UcxLoop::on_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param) {
  return static_cast<UcxLoop*>(self)->arrive(header, header_bytes, data, bytes, param);
}

ucs_status_t UcxLoop::arrive(const void* header, size_t header_bytes, void* data, size_t bytes,
                             const ucp_am_recv_param_t* param) {
  WireHeader wire;
  if (header_bytes != sizeof wire) return UCS_OK;  // not of this program; dropped unread
  std::memcpy(&wire, header, sizeof wire);
  if (wire.magic != WireHeader::kMagic || (wire.kind != WireKind::kSegment && wire.bytes != bytes)) return UCS_OK;
  Peer* peer = find(SlotId(wire.from_slot));
  if (peer == nullptr) return UCS_OK;
  switch (wire.kind) {
    case WireKind::kMessage:
      return arrive_message(*peer, wire, data, param);
    case WireKind::kSegment:
      arrive_in_segment(*peer, wire);
      break;
    case WireKind::kRelease:
      if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) break;
      for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t ticket = 0;
        std::memcpy(&ticket, static_cast<const std::byte*>(data) + at, sizeof ticket);
        peer->gate.retire(ticket);
      }
      peer->to_pump = true;
      break;
    case WireKind::kStalled:
      releases_->stalled(peer->slot);
      break;
    case WireKind::kHello:
      peer->greeted = true;
      break;
    case WireKind::kWant:
      peer->gate.want(wire.tag());
      peer->to_pump = true;
      releases_->stalled(peer->slot);
      break;
  }
  return UCS_OK;
}

void UcxLoop::deliver(const WireHeader& wire, Payload payload) {
  const SlotId from(wire.from_slot);
  inbox_.complete(from, wire.tag(), releases_->track(from, wire.ticket, std::move(payload)));
}

void UcxLoop::arrive_in_segment(Peer& peer, const WireHeader& wire) {
  if (!inbox_.admit(peer.slot, wire.tag(), wire.header()).wanted) {
    releases_->give_back(peer.slot, wire.ticket);
    return;
  }
  const std::byte* data = peer.segment ? peer.segment->at(wire.place, wire.bytes) : nullptr;
  if (data == nullptr) {
    inbox_.fail(peer.slot, wire.tag(),
                data_loss(wire.tag().to_string() + ": slot " + std::to_string(peer.slot.value) +
                          " names a place outside its shared segment to slot " + std::to_string(options_.self.value)));
    return;
  }
  deliver(wire, {data, wire.bytes, peer.segment, nullptr});
}

ucs_status_t UcxLoop::arrive_message(Peer& peer, const WireHeader& wire, void* data, const ucp_am_recv_param_t* param) {
  Inbox::Admission admission = inbox_.admit(peer.slot, wire.tag(), wire.header());
  if (!admission.wanted) {
    releases_->give_back(peer.slot, wire.ticket);
    return UCS_OK;
  }
  Payload landing = std::move(admission.landing);
  if (!landing.owner || landing.bytes < wire.bytes) {
    SlabPool::Slab slab = pool_->take(wire.bytes);
    landing = {slab.data, slab.bytes, std::move(slab.owner), nullptr};
  }
  landing.bytes = wire.bytes;
  // The landing place came from this loop's pool, whose memory is writable; Payload only shows it as read-only.
  auto* bytes = const_cast<std::byte*>(landing.data);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    if (wire.bytes > 0) std::memcpy(bytes, data, wire.bytes);
    deliver(wire, std::move(landing));
    return UCS_OK;
  }
  if (free_receives_.empty()) free_receives_.push_back(receives_.emplace_back(std::make_unique<ReceiveOp>()).get());
  ReceiveOp* op = free_receives_.back();
  free_receives_.pop_back();
  op->loop = this;
  op->header = wire;
  op->landing = std::move(landing);
  ucp_request_param_t receive{};
  receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  receive.cb.recv_am = &UcxLoop::on_received;
  receive.user_data = op;
  void* request = ucp_am_recv_data_nbx(worker_->get(), data, bytes, wire.bytes, &receive);
  if (!UCS_PTR_IS_PTR(request)) end_receive(op, UCS_PTR_STATUS(request));
  return UCS_OK;
}

void UcxLoop::on_received(void* request, ucs_status_t status, size_t, void* argument) {
  auto* op = static_cast<ReceiveOp*>(argument);
  ucp_request_free(request);
  op->loop->end_receive(op, status);
}

void UcxLoop::end_receive(ReceiveOp* op, ucs_status_t status) {
  const SlotId from(op->header.from_slot);
  const MessageTag tag = op->header.tag();
  if (status == UCS_OK) {
    deliver(op->header, std::move(op->landing));
  } else {
    cut_off_.push_back(std::move(op->landing.owner));
    inbox_.fail(from, tag, peer_is_lost(from, options_.self, tag, ucs_status_string(status)));
  }
  op->landing = {};
  free_receives_.push_back(op);
}

}  // namespace troupe
