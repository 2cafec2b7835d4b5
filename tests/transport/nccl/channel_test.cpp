#include "transport/nccl/channel.h"

#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/rendezvous/memory_kv_store.h"
#include "tests/transport/channel/channel_contract.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

int device_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

std::shared_ptr<std::byte> device_memory(int device, size_t bytes) {
  void* data = nullptr;
  TROUPE_CHECK(cudaSetDevice(device) == cudaSuccess && cudaMalloc(&data, bytes + 1) == cudaSuccess);
  return {static_cast<std::byte*>(data), [](std::byte* memory) { (void)cudaFree(memory); }};
}

/// Lets the suite, whose payloads are host memory, run over a channel of device memory.
class Staged final : public Channel {
 public:
  Staged(std::unique_ptr<Channel> channel, int device) : channel_(std::move(channel)), device_(device) {}
  bool in_process() const override { return false; }
  Status connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) override {
    return channel_->connect(peers, store, timeout);
  }
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override {
    const auto memory = device_memory(device_, payload.bytes);
    TROUPE_CHECK(cudaMemcpy(memory.get(), payload.data, payload.bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    return channel_->send(to, tag, header, {memory.get(), payload.bytes, memory, nullptr});
  }
  Status post_receive(SlotId from, const MessageTag& tag, size_t bytes) override {
    return channel_->post_receive(from, tag, bytes);
  }
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          std::chrono::milliseconds timeout) override {
    TROUPE_ASSIGN(const Payload payload, channel_->receive(from, tag, expected, timeout));
    auto host = std::make_shared<std::vector<std::byte>>(payload.bytes);
    TROUPE_CHECK(cudaMemcpy(host->data(), payload.data, payload.bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    return Payload{host->data(), payload.bytes, host, nullptr};
  }
  Status flush(std::chrono::milliseconds timeout) override { return channel_->flush(timeout); }
  void peer_lost(SlotId peer) override { channel_->peer_lost(peer); }
  void abort() override { channel_->abort(); }
  ChannelCounters counters() const override { return channel_->counters(); }

 private:
  std::unique_ptr<Channel> channel_;
  int device_;
};

struct Ends {
  std::unique_ptr<Channel> a, b;
};

ChannelPair make_pair() {
  if (device_count() < 2) return {};  // NCCL refuses two ranks on one device
  auto ends = std::make_shared<Ends>();
  MemoryKvStore store;
  const auto make = [](int slot) {
    auto control = create_ucx_channel({"job/g1/control", SlotId(slot), ""}).value();
    return std::make_unique<Staged>(create_nccl_channel({"job/g1", SlotId(slot), slot}, std::move(control)).value(),
                                    slot);
  };
  ends->a = make(0);
  ends->b = make(1);
  Status connected_a;
  std::thread other([&] { connected_a = ends->a->connect({SlotId(1)}, store, 60s); });
  const Status connected_b = ends->b->connect({SlotId(0)}, store, 60s);
  other.join();
  REQUIRE(connected_a.ok());
  REQUIRE(connected_b.ok());
  return {ends->a.get(), ends->b.get(), SlotId(0), SlotId(1), ends};
}

}  // namespace

TEST_CASE("NCCL point-to-point keeps the channel contract") {
  run_channel_contract([](size_t) { return make_pair(); });
}

TEST_CASE("an NCCL channel without a control channel, or on a device that is not there, is refused") {
  CHECK(create_nccl_channel({"job/g1", SlotId(0), 0}, nullptr).error().code == ErrorCode::kInvalidArgument);
  auto control = create_ucx_channel({"job/g1", SlotId(0), ""}).value();
  const auto channel = create_nccl_channel({"job/g1", SlotId(0), 999}, std::move(control));
  REQUIRE_FALSE(channel.ok());
  CHECK(channel.error().message.find("CUDA device 999") != std::string::npos);
}
