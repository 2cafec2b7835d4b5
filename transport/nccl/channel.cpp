#include "transport/nccl/channel.h"

#include <algorithm>
#include <map>

#include "transport/channel/sent_counters.h"
#include "transport/nccl/link.h"

namespace troupe {
namespace {

constexpr size_t kRetainedBytes = size_t{1} << 30;

std::shared_ptr<SlabPool> device_pool(int device) {
  const auto allocate = [device](size_t bytes) {
    void* data = nullptr;
    if (cudaSetDevice(device) != cudaSuccess || cudaMalloc(&data, bytes) != cudaSuccess) throw std::bad_alloc();
    return static_cast<std::byte*>(data);
  };
  return SlabPool::create(kRetainedBytes, {allocate, [](std::byte* data, size_t) { (void)cudaFree(data); }});
}

class NcclChannel final : public Channel {
 public:
  NcclChannel(const NcclChannelOptions& options, std::unique_ptr<Channel> control)
      : options_(options), inbox_(options.self), pool_(device_pool(options.device)), control_(std::move(control)) {}
  ~NcclChannel() override;

  bool in_process() const override { return false; }
  Status connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) override;
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override;
  Status post_receive(SlotId from, const MessageTag& tag, size_t bytes) override;
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          std::chrono::milliseconds timeout) override {
    return inbox_.receive(from, tag, expected, timeout);
  }
  Status flush(std::chrono::milliseconds timeout) override;
  void peer_lost(SlotId peer) override;
  void abort() override;
  ChannelCounters counters() const override;

 private:
  const NcclChannelOptions options_;
  Inbox inbox_;
  std::shared_ptr<SlabPool> pool_;
  std::unique_ptr<Channel> control_;
  std::map<SlotId, std::unique_ptr<NcclLink>> links_;  // fixed after connect()
  SentCounters sent_;
};

/// In ascending order of peers, so that all slots make the pairs' communicators in one order of pairs.
Status NcclChannel::connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) {
  TROUPE_RETURN_IF_ERROR(control_->connect(peers, store, timeout));
  std::vector<SlotId> ascending = peers;
  std::sort(ascending.begin(), ascending.end());
  for (const SlotId peer : ascending) {
    auto link = std::make_unique<NcclLink>(
        NcclLink::Shared{options_.self, options_.device, control_.get(), &inbox_, pool_}, peer);
    TROUPE_RETURN_IF_ERROR(link->connect(options_.name + "/p2p", store, timeout));
    links_[peer] = std::move(link);
  }
  return {};
}

Status NcclChannel::send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) {
  TROUPE_RETURN_IF_ERROR(inbox_.usable(to, tag));
  const auto link = links_.find(to);
  if (link == links_.end()) {
    return make_error(ErrorCode::kFailedPrecondition, "slot " + std::to_string(options_.self.value) +
                                                          " is not connected to slot " + std::to_string(to.value) +
                                                          ": " + tag.to_string());
  }
  const size_t bytes = payload.bytes;
  link->second->send(WireHeader::of(options_.self, tag, header, bytes), std::move(payload));
  sent_.sent(bytes);
  return {};
}

Status NcclChannel::post_receive(SlotId from, const MessageTag& tag, size_t bytes) {
  try {
    SlabPool::Slab slab = pool_->take(bytes);
    return inbox_.expect(from, tag, {slab.data, slab.bytes, std::move(slab.owner), nullptr});
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kResourceExhausted,
                      "no " + std::to_string(bytes) + " bytes of device memory for " + tag.to_string());
  }
}

Status NcclChannel::flush(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (auto& [peer, link] : links_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!link->flush(std::max(left, std::chrono::milliseconds(0)))) {
      return deadline_exceeded("messages of slot " + std::to_string(options_.self.value) + " to slot " +
                               std::to_string(peer.value) + " were not taken within " +
                               std::to_string(timeout.count()) + " ms");
    }
  }
  return inbox_.usable(SlotId(-1), {});
}

void NcclChannel::peer_lost(SlotId peer) {
  inbox_.lose(peer, "the control plane said so");
  control_->peer_lost(peer);
  const auto link = links_.find(peer);
  if (link == links_.end()) return;
  link->second->stop();
  NcclComm::abort_all(link->second->communicators());
}

void NcclChannel::abort() {
  inbox_.abort();
  control_->abort();
  std::vector<NcclComm*> all;
  for (auto& [peer, link] : links_) {
    link->stop();
    for (NcclComm* communicator : link->communicators()) all.push_back(communicator);
  }
  NcclComm::abort_all(all);
}

ChannelCounters NcclChannel::counters() const {
  ChannelCounters counters = inbox_.counters();
  sent_.count(counters);
  return counters;
}

/// A message that its peer never took would hold the sending thread up; what matters was flushed before.
NcclChannel::~NcclChannel() {
  abort();
  links_.clear();
}

}  // namespace

Result<std::unique_ptr<Channel>> create_nccl_channel(const NcclChannelOptions& options,
                                                     std::unique_ptr<Channel> control) {
  if (control == nullptr || control->in_process())
    return invalid_argument("an NCCL channel needs a control channel between slots");
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted != cudaSuccess || options.device < 0 || options.device >= devices) {
    return invalid_argument("CUDA device " + std::to_string(options.device) + " of " + std::to_string(devices) +
                            " for slot " + std::to_string(options.self.value));
  }
  return std::unique_ptr<Channel>(std::make_unique<NcclChannel>(options, std::move(control)));
}

}  // namespace troupe
