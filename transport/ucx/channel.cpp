#include <algorithm>
#include <sstream>

#include "transport/channel/inbox.h"
#include "transport/channel/message.h"
#include "transport/ucx/ucx_loop.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

/// A wait at the rendezvous looks up this often whether it has become pointless.
constexpr milliseconds kRendezvousSlice{1000};

/// The channel between slots over UCX: an inbox for what arrives, a loop that owns the worker.
class UcxChannel final : public Channel {
 public:
  explicit UcxChannel(const UcxChannelOptions& options) : options_(options), inbox_(options.self) {}
  Status open();

  bool in_process() const override { return false; }
  Status connect(const std::vector<SlotId>& peers, KvStore& store, milliseconds timeout) override;
  SendBuffer buffer_for(SlotId to, size_t bytes) override { return loop_->buffer_for(to, bytes); }
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override;
  Status post_receive(SlotId from, const MessageTag& tag, size_t bytes) override {
    return inbox_.expect(from, tag, loop_->landing(from, bytes));
  }
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          milliseconds timeout) override {
    return inbox_.receive(from, tag, expected, timeout, connected_ ? loop_.get() : nullptr);
  }
  Status flush(milliseconds timeout) override { return loop_->flush(timeout); }
  void peer_lost(SlotId peer) override { loop_->close_peer(peer, "the control plane said so"); }
  void abort() override;
  ChannelCounters counters() const override;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  std::string key_of(SlotId slot) const { return options_.name + "/ucx/" + std::to_string(slot.value); }
  Result<std::string> meet(SlotId peer, const std::string& key, KvStore& store, Deadline deadline) const;
  Status wait_for_peers(const std::vector<SlotId>& peers, KvStore& store, Deadline deadline);

  const UcxChannelOptions options_;
  Inbox inbox_;
  std::unique_ptr<UcxLoop> loop_;
  bool connected_ = false;
};

milliseconds until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

Status UcxChannel::open() {
  TROUPE_ASSIGN(loop_, UcxLoop::create(options_, inbox_));
  return {};
}

/// What `peer` has left under `key`; ends early when the channel is aborted or the peer lost.
Result<std::string> UcxChannel::meet(SlotId peer, const std::string& key, KvStore& store, Deadline deadline) const {
  while (true) {
    auto value = store.get(key, std::min(until(deadline), kRendezvousSlice));
    if (value.ok()) return value;
    TROUPE_RETURN_IF_ERROR(inbox_.usable(peer, {}));
    if (value.error().code != ErrorCode::kDeadlineExceeded || until(deadline) == milliseconds(0))
      return wrap(value.error(), "slot " + std::to_string(peer.value) + " has not come to the rendezvous with slot " +
                                     std::to_string(options_.self.value));
  }
}

/// Returns when every peer has all of its connections: one that left earlier would fail those that still connect. Also
/// tells each peer whether this slot reads its segment.
Status UcxChannel::wait_for_peers(const std::vector<SlotId>& peers, KvStore& store, Deadline deadline) {
  std::string readable;
  for (const SlotId slot : loop_->segments_read()) readable += std::to_string(slot.value) + " ";
  TROUPE_RETURN_IF_ERROR(store.set(key_of(options_.self) + "/connected", readable));
  for (const SlotId peer : peers) {
    TROUPE_ASSIGN(const std::string read, meet(peer, key_of(peer) + "/connected", store, deadline));
    std::istringstream slots(read);
    for (int32_t slot = 0; slots >> slot;) {
      if (SlotId(slot) == options_.self) loop_->segment_is_read_by(peer);
    }
  }
  return {};
}

Status UcxChannel::connect(const std::vector<SlotId>& peers, KvStore& store, milliseconds timeout) {
  if (connected_) return make_error(ErrorCode::kFailedPrecondition, "the channel is connected already");
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  TROUPE_RETURN_IF_ERROR(store.set(key_of(options_.self), loop_->card()));
  std::map<SlotId, std::string> cards;
  for (const SlotId peer : peers) {
    TROUPE_ASSIGN(cards[peer], meet(peer, key_of(peer), store, deadline));
  }
  TROUPE_RETURN_IF_ERROR(loop_->start(cards));
  connected_ = true;
  TROUPE_RETURN_IF_ERROR(loop_->wait_connected(until(deadline)));
  return wait_for_peers(peers, store, deadline);
}

Status UcxChannel::send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) {
  TROUPE_RETURN_IF_ERROR(inbox_.usable(to, tag));
  const size_t bytes = payload.bytes;
  return loop_->send(to, WireHeader::of(options_.self, tag, header, bytes), std::move(payload));
}

void UcxChannel::abort() {
  inbox_.abort();
  loop_->close_all();
}

ChannelCounters UcxChannel::counters() const {
  ChannelCounters counters = inbox_.counters();
  loop_->count(counters);
  return counters;
}

}  // namespace

Result<std::unique_ptr<Channel>> create_ucx_channel(const UcxChannelOptions& options) {
  auto channel = std::make_unique<UcxChannel>(options);
  TROUPE_RETURN_IF_ERROR(channel->open());
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace troupe
