
#include "transport/channel/inbox.h"
#include "transport/channel/message.h"
#include "transport/channel/sent_counters.h"

namespace troupe {
namespace {

/// Both ends of every message are this one object, so a send puts into the inbox that a receive takes from.
class InProcessChannel final : public Channel {
 public:
  bool in_process() const override { return true; }
  Status connect(const std::vector<SlotId>& peers, KvStore&, std::chrono::milliseconds) override;
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override;
  Status post_receive(SlotId from, const MessageTag& tag, size_t) override { return inbox_.expect(from, tag, {}); }
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          std::chrono::milliseconds timeout) override {
    return inbox_.receive(from, tag, expected, timeout);
  }
  /// What was sent is already the receiver's: nothing is buffered on the sender's side.
  Status flush(std::chrono::milliseconds) override { return inbox_.usable(SlotId(-1), {}); }
  void peer_lost(SlotId peer) override { inbox_.lose(peer, "the control plane said so"); }
  void abort() override { inbox_.abort(); }
  ChannelCounters counters() const override;

 private:
  Inbox inbox_{std::nullopt};
  SentCounters sent_;
};

Status InProcessChannel::connect(const std::vector<SlotId>& peers, KvStore&, std::chrono::milliseconds) {
  if (peers.size() <= 1) return {};
  return invalid_argument("an in-process channel has its own slot as its only peer, got " +
                          std::to_string(peers.size()) + " peers");
}

Status InProcessChannel::send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) {
  TROUPE_RETURN_IF_ERROR(inbox_.usable(to, tag));
  sent_.sent(payload.bytes);
  if (inbox_.admit(to, tag, header).wanted) inbox_.complete(to, tag, std::move(payload));
  return {};
}

ChannelCounters InProcessChannel::counters() const {
  ChannelCounters counters = inbox_.counters();
  sent_.count(counters);
  return counters;
}

}  // namespace

std::unique_ptr<Channel> create_in_process_channel() { return std::make_unique<InProcessChannel>(); }

}  // namespace troupe
