#include <algorithm>
#include <mutex>

#include "transport/channel/inbox.h"
#include "transport/channel/message.h"
#include "transport/ucx/ucx_loop.h"

namespace troupe {
namespace {

/// The channel between slots over UCX: an inbox for what arrives, a loop that owns the worker.
class UcxChannel final : public Channel {
 public:
  explicit UcxChannel(const UcxChannelOptions& options) : options_(options), inbox_(options.self) {}
  Status open();

  bool in_process() const override { return false; }
  Status connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) override;
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override;
  Status post_receive(SlotId from, const MessageTag& tag, size_t bytes) override;
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          std::chrono::milliseconds timeout) override {
    return inbox_.receive(from, tag, expected, timeout);
  }
  Status flush(std::chrono::milliseconds timeout) override { return loop_->flush(timeout); }
  void peer_lost(SlotId peer) override;
  void abort() override;
  ChannelCounters counters() const override;

 private:
  std::string key_of(SlotId slot) const { return options_.name + "/ucx/" + std::to_string(slot.value); }

  const UcxChannelOptions options_;
  Inbox inbox_;
  std::unique_ptr<UcxLoop> loop_;
  bool connected_ = false;
  mutable std::mutex mutex_;
  ChannelCounters sent_;
};

Status UcxChannel::open() {
  TROUPE_ASSIGN(loop_, UcxLoop::create(options_, inbox_));
  return {};
}

Status UcxChannel::connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) {
  if (connected_) return make_error(ErrorCode::kFailedPrecondition, "the channel is connected already");
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] {
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest, std::chrono::milliseconds(0));
  };
  TROUPE_RETURN_IF_ERROR(store.set(key_of(options_.self), loop_->address()));
  std::map<SlotId, std::string> addresses;
  for (const SlotId peer : peers) {
    auto address = store.get(key_of(peer), left());
    if (!address.ok())
      return wrap(address.error(), "slot " + std::to_string(peer.value) + " has not come to the rendezvous");
    addresses[peer] = std::move(*address);
  }
  TROUPE_RETURN_IF_ERROR(loop_->start(addresses));
  connected_ = true;
  return loop_->wait_connected(left());
}

Status UcxChannel::send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) {
  TROUPE_RETURN_IF_ERROR(inbox_.usable(to, tag));
  const size_t bytes = payload.bytes;
  TROUPE_RETURN_IF_ERROR(loop_->send(to, WireHeader::of(options_.self, tag, header, bytes), std::move(payload)));
  std::lock_guard lock(mutex_);
  ++sent_.messages_sent;
  sent_.bytes_sent += bytes;
  return {};
}

Status UcxChannel::post_receive(SlotId from, const MessageTag& tag, size_t bytes) {
  SlabPool::Slab slab = loop_->take_slab(bytes);
  return inbox_.expect(from, tag, {slab.data, slab.bytes, std::move(slab.owner), nullptr});
}

void UcxChannel::peer_lost(SlotId peer) {
  inbox_.lose(peer, "the control plane said so");
  loop_->close_peer(peer);
}

void UcxChannel::abort() {
  inbox_.abort();
  loop_->close_all();
}

ChannelCounters UcxChannel::counters() const {
  ChannelCounters counters = inbox_.counters();
  std::lock_guard lock(mutex_);
  counters.messages_sent = sent_.messages_sent;
  counters.bytes_sent = sent_.bytes_sent;
  return counters;
}

}  // namespace

Result<std::unique_ptr<Channel>> create_ucx_channel(const UcxChannelOptions& options) {
  auto channel = std::make_unique<UcxChannel>(options);
  TROUPE_RETURN_IF_ERROR(channel->open());
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace troupe
