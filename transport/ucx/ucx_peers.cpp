#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "base/process_watch.h"
#include "transport/channel/message.h"
#include "transport/ucx/ucx_peer.h"

namespace troupe {
namespace {
constexpr std::chrono::milliseconds kShutdownGrace{500};
constexpr int kEndOfProcess = 200;  // milliseconds

/// Of a descriptor that watches a process, or -1. What a process holds goes shortly before itself.
bool has_ended(int process) {
  pollfd event{process, POLLIN, 0};
  return process >= 0 && poll(&event, 1, kEndOfProcess) == 1;
}

}  // namespace

UcxLoop::Peer::~Peer() {
  if (process >= 0) close(process);
}

/// A line for the process, one for the segment, then the worker's address.
std::string UcxLoop::card() const {
  return own_process() + "\n" + (segment_ ? segment_->ticket() : "-") + "\n" + worker_->address();
}

UcxLoop::Peer* UcxLoop::find(SlotId slot) const {
  const auto found = peers_.find(slot);
  return found == peers_.end() ? nullptr : found->second.get();
}

Status UcxLoop::add_peer(SlotId slot, const std::string& card) {
  const size_t first = card.find('\n');
  const size_t second = first == std::string::npos ? first : card.find('\n', first + 1);
  if (second == std::string::npos)
    return data_loss("slot " + std::to_string(slot.value) + " left no address at the rendezvous");
  auto peer = std::make_unique<Peer>(this, slot, options_.credit_bytes);
  const auto process = watch_process(card.substr(0, first));
  if (!process.ok())
    return wrap(process.error(),
                "slot " + std::to_string(options_.self.value) + " connecting to slot " + std::to_string(slot.value));
  peer->process = *process;
  if (segment_) {
    auto view = SegmentView::open(card.substr(first + 1, second - first - 1));
    if (view.ok()) peer->segment = std::move(*view);
  }
  auto endpoint = worker_->connect(card.substr(second + 1), &UcxLoop::on_error, peer.get());
  if (!endpoint.ok() && has_ended(peer->process))
    return unavailable("slot " + std::to_string(slot.value) + " went away while slot " +
                       std::to_string(options_.self.value) + " connected to it");
  if (!endpoint.ok())
    return wrap(endpoint.error(), "slot " + std::to_string(options_.self.value) + " could not connect to slot " +
                                      std::to_string(slot.value));
  peer->endpoint = *endpoint;
  peers_[slot] = std::move(peer);
  return {};
}

Status UcxLoop::start(const std::map<SlotId, std::string>& cards) {
  std::lock_guard lock(mutex_);
  for (const auto& [slot, card] : cards) TROUPE_RETURN_IF_ERROR(add_peer(slot, card));
  for (auto& [slot, peer] : peers_) begin_flush_locked(*peer);
  started_.store(true);
  // The notice of one that was lost before found no endpoint to close.
  for (auto& [slot, peer] : peers_) {
    if (const auto reason = inbox_.loss_of(slot)) close_endpoint_locked(*peer, *reason);
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

/// A flush of a fresh endpoint ends when the peer has answered, one behind a hello when all before it has left.
void UcxLoop::begin_flush_locked(Peer& peer) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxLoop::on_flushed;
  param.user_data = &peer;
  void* request = ucp_ep_flush_nbx(peer.endpoint, &param);
  if (!UCS_PTR_IS_PTR(request)) on_flushed(nullptr, UCS_PTR_STATUS(request), &peer);
}

void UcxLoop::on_flushed(void* request, ucs_status_t status, void* argument) {
  auto* peer = static_cast<Peer*>(argument);
  if (request != nullptr) ucp_request_free(request);
  if (status == UCS_OK) (peer->connected ? peer->settled : peer->connected) = true;
}

std::string UcxLoop::peers_where(bool (*holds)(const Peer&)) const {
  std::lock_guard lock(mutex_);
  std::string names;
  for (const auto& [slot, peer] : peers_) {
    if (peer->endpoint != nullptr && holds(*peer)) names += (names.empty() ? "" : ", ") + std::to_string(slot.value);
  }
  return names;
}

std::vector<SlotId> UcxLoop::segments_read() const {
  std::vector<SlotId> slots;
  for (const auto& [slot, peer] : peers_) {
    if (peer->segment) slots.push_back(slot);
  }
  return slots;
}

void UcxLoop::segment_is_read_by(SlotId peer) {
  if (Peer* found = find(peer); found != nullptr && segment_) found->reads_ours.store(true);
}

Payload UcxLoop::landing(SlotId from, size_t bytes) {
  const Peer* peer = find(from);
  if (peer == nullptr || (peer->segment && bytes >= kSegmentFrom)) return {};
  SlabPool::Slab slab = pool_->take(bytes);
  return {slab.data, slab.bytes, std::move(slab.owner), nullptr};
}

void UcxLoop::close_peer(SlotId slot, const std::string& reason) {
  inbox_.lose(slot, reason);
  if (!started_.load()) return;
  {
    std::lock_guard lock(mutex_);
    if (Peer* peer = find(slot)) close_endpoint_locked(*peer, reason);
  }
  driver_.wake();
}

void UcxLoop::close_all() {
  if (started_.load()) {
    std::lock_guard lock(mutex_);
    for (auto& [slot, peer] : peers_) close_endpoint_locked(*peer, "the channel was aborted");
  }
  driver_.wake();
  background_.wake();
}

/// Their last messages may still lie unread: those count.
void UcxLoop::reap(const std::vector<SlotId>& ended) {
  std::lock_guard lock(mutex_);
  while (progress_locked()) {
  }
  for (const SlotId slot : ended) {
    Peer* peer = find(slot);
    if (peer == nullptr || peer->process < 0) continue;
    close(peer->process);
    peer->process = -1;
    close_endpoint_locked(*peer, "its process has ended");
  }
  driver_.wake();
}

void UcxLoop::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
  auto* peer = static_cast<Peer*>(argument);
  peer->loop->fail_locked(*peer, ucs_status_string(status));
}

/// An endpoint is not closed inside its own callback: progress does it next.
void UcxLoop::fail_locked(Peer& peer, const std::string& reason) {
  if (peer.endpoint == nullptr) return;
  if (peer.failure.empty()) peer.failure = reason;
  errors_ = true;
}

void UcxLoop::close_endpoint_locked(Peer& peer, const std::string& reason) {
  if (peer.endpoint == nullptr) return;
  if (peer.failure.empty()) peer.failure = reason;
  inbox_.lose(peer.slot, peer.failure);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucp_ep_h endpoint = std::exchange(peer.endpoint, nullptr);
  void* request = ucp_ep_close_nbx(endpoint, &param);
  if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
  releases_->forget(peer.slot);
  const auto dropped = peer.gate.clear(cut_off_);
  pending_.fetch_sub(static_cast<int64_t>(dropped.size()) + std::exchange(peer.under_way, 0));
}

/// Lets what is under way leave, for a bounded time, then closes by force and waits until UCX has let go of every
/// endpoint.
void UcxLoop::shut_down() {
  std::lock_guard lock(mutex_);
  const auto progress_until = [this](const auto& done) {
    const auto deadline = Clock::now() + kShutdownGrace;
    while (!done() && Clock::now() < deadline) progress_locked();
  };
  std::vector<void*> flushes;
  for (auto& [slot, peer] : peers_) {
    ucp_request_param_t param{};
    void* request = peer->endpoint == nullptr ? nullptr : ucp_ep_flush_nbx(peer->endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) flushes.push_back(request);
  }
  const auto all_done = [](const std::vector<void*>& requests) {
    return std::none_of(requests.begin(), requests.end(),
                        [](void* request) { return ucp_request_check_status(request) == UCS_INPROGRESS; });
  };
  progress_until([&] { return all_done(flushes); });
  for (auto& [slot, peer] : peers_) close_endpoint_locked(*peer, "this slot has closed its channel");
  progress_until([&] { return all_done(closing_) && all_done(flushes); });
  for (void* request : flushes) ucp_request_free(request);
  for (void* request : closing_) ucp_request_free(request);
  closing_.clear();
}

}  // namespace troupe
