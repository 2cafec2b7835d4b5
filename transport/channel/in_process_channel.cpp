#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "transport/channel/message.h"

namespace troupe {
namespace {

struct Arrived {
  MessageHeader header;
  Payload payload;
};

/// Both ends of every message are this one object, so a send is a move into a map and a receive a move out of it.
class InProcessChannel final : public Channel {
 public:
  bool in_process() const override { return true; }
  Status connect(const std::vector<SlotId>& peers, KvStore&, std::chrono::milliseconds) override {
    if (peers.size() > 1) return invalid_argument("an in-process channel has its own slot as its only peer, got " + std::to_string(peers.size()));
    return {};
  }
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override;
  Status post_receive(SlotId from, const MessageTag& tag, size_t) override;
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected, std::chrono::milliseconds timeout) override;
  Status flush(std::chrono::milliseconds) override;
  void peer_lost(SlotId peer) override;
  void abort() override;
  ChannelCounters counters() const override;

 private:
  Status check_usable(SlotId peer, const MessageTag& tag) const;
  void enter_generation(uint32_t generation, std::vector<Payload>& dropped);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
  uint32_t generation_ = 0;
  std::set<SlotId> lost_;
  std::map<MessageTag, Arrived> arrived_;
  ChannelCounters counters_;
};

Status InProcessChannel::check_usable(SlotId peer, const MessageTag& tag) const {
  if (aborted_) return channel_aborted(peer);
  if (lost_.count(peer) > 0) return peer_is_lost(peer, tag, "the control plane said so");
  return {};
}

/// The receiving end's use of a newer generation makes everything older late. The payloads are let go of outside the lock.
void InProcessChannel::enter_generation(uint32_t generation, std::vector<Payload>& dropped) {
  if (generation <= generation_) return;
  generation_ = generation;
  for (auto it = arrived_.begin(); it != arrived_.end() && it->first.generation < generation;) {
    dropped.push_back(std::move(it->second.payload));
    it = arrived_.erase(it);
    ++counters_.stale_dropped;
  }
}

Status InProcessChannel::send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) {
  {
    std::lock_guard lock(mutex_);
    TROUPE_RETURN_IF_ERROR(check_usable(to, tag));
    ++counters_.messages_sent;
    counters_.bytes_sent += payload.bytes;
    if (tag.generation < generation_) {
      ++counters_.stale_dropped;
      return {};
    }
    const auto placed = arrived_.try_emplace(tag, Arrived{header, std::move(payload)});
    if (!placed.second) return make_error(ErrorCode::kFailedPrecondition, "sent twice: " + tag.to_string());
  }
  changed_.notify_all();
  return {};
}

Status InProcessChannel::post_receive(SlotId from, const MessageTag& tag, size_t) {
  std::vector<Payload> dropped;
  std::lock_guard lock(mutex_);
  TROUPE_RETURN_IF_ERROR(check_usable(from, tag));
  enter_generation(tag.generation, dropped);
  return {};
}

Result<Payload> InProcessChannel::receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                                          std::chrono::milliseconds timeout) {
  std::vector<Payload> dropped;
  std::unique_lock lock(mutex_);
  TROUPE_RETURN_IF_ERROR(check_usable(from, tag));
  enter_generation(tag.generation, dropped);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto here = [&] { return arrived_.count(tag) > 0 || !check_usable(from, tag).ok(); };
  if (!changed_.wait_until(lock, deadline, here)) return receive_timed_out(from, tag, timeout);
  const auto found = arrived_.find(tag);
  if (aborted_ || found == arrived_.end()) return check_usable(from, tag).error();
  Arrived arrived = std::move(found->second);
  arrived_.erase(found);
  ++counters_.messages_received;
  counters_.bytes_received += arrived.payload.bytes;
  changed_.notify_all();
  TROUPE_RETURN_IF_ERROR(check_header(from, from, tag, arrived.header, arrived.payload.bytes, expected));
  return std::move(arrived.payload);
}

/// Nothing is buffered on the sender's side: what was sent is already the receiver's.
Status InProcessChannel::flush(std::chrono::milliseconds) {
  std::lock_guard lock(mutex_);
  if (aborted_) return channel_aborted(SlotId());
  return {};
}

void InProcessChannel::peer_lost(SlotId peer) {
  {
    std::lock_guard lock(mutex_);
    lost_.insert(peer);
  }
  changed_.notify_all();
}

void InProcessChannel::abort() {
  std::map<MessageTag, Arrived> dropped;
  {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    dropped.swap(arrived_);
  }
  changed_.notify_all();
}

ChannelCounters InProcessChannel::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace

std::unique_ptr<Channel> create_in_process_channel() { return std::make_unique<InProcessChannel>(); }

}  // namespace troupe
