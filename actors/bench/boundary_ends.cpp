#include "actors/bench/boundary_ends.h"

#include <chrono>
#include <cstring>
#include <deque>

#include "transport/channel/channel.h"
#include "transport/ucx/raw_tag.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPatience{20000};

MessageTag numbered(int64_t number, int from) {
  MessageTag tag;
  tag.step = number;
  tag.from_rank = from;
  return tag;
}

MessageHeader header_of(size_t bytes) { return {1, static_cast<int64_t>(bytes), 0, 0}; }

std::shared_ptr<std::vector<std::byte>> filled(size_t bytes) {
  return std::make_shared<std::vector<std::byte>>(bytes, std::byte{1});
}

class ChannelEnd final : public BenchEnd {
 public:
  ChannelEnd(std::unique_ptr<Channel> channel, const BenchEndOptions& options)
      : channel_(std::move(channel)), self_(options.self), memory_(filled(options.most_bytes)) {}
  Status send(size_t bytes) override {
    return channel_->send(SlotId(1 - self_), numbered(sent_++, self_), header_of(bytes),
                          {memory_->data(), bytes, memory_, nullptr});
  }
  Status expect(size_t bytes) override {
    return channel_->post_receive(SlotId(1 - self_), numbered(expected_++, 1 - self_), bytes);
  }
  Status take(size_t bytes) override {
    return channel_->receive(SlotId(1 - self_), numbered(taken_++, 1 - self_), header_of(bytes), kPatience).status();
  }
  Status flush() override { return channel_->flush(kPatience); }

 private:
  std::unique_ptr<Channel> channel_;
  int self_;
  std::shared_ptr<std::vector<std::byte>> memory_;
  int64_t sent_ = 0, expected_ = 0, taken_ = 0;
};

class RawEnd final : public BenchEnd {
 public:
  RawEnd(std::unique_ptr<RawTag> raw, size_t most_bytes)
      : raw_(std::move(raw)), source_(filled(most_bytes)), most_bytes_(most_bytes) {}
  Status send(size_t bytes) override {
    if (under_way_ == kBenchWindow) {
      TROUPE_RETURN_IF_ERROR(raw_->wait_sent(kPatience));
      --under_way_;
    }
    ++under_way_;
    return raw_->post_send(source_->data(), bytes);
  }
  Status expect(size_t bytes) override {
    if (landings_.size() < kBenchWindow) landings_.push_back(filled(most_bytes_));
    const auto& landing = landings_[next_++ % landings_.size()];
    return raw_->post_receive(landing->data(), bytes);
  }
  Status take(size_t) override { return raw_->wait_received(kPatience); }
  Status flush() override {
    for (; under_way_ > 0; --under_way_) TROUPE_RETURN_IF_ERROR(raw_->wait_sent(kPatience));
    return {};
  }

 private:
  std::unique_ptr<RawTag> raw_;
  std::shared_ptr<std::vector<std::byte>> source_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> landings_;
  const size_t most_bytes_;
  size_t next_ = 0;
  int under_way_ = 0;
};

Result<std::unique_ptr<BenchEnd>> create_raw_end(const BenchEndOptions& options, KvStore& store) {
  TROUPE_ASSIGN(auto raw, create_raw_tag(options.transports, options.eager));
  TROUPE_RETURN_IF_ERROR(store.set(options.label + "/" + std::to_string(options.self), raw->address()));
  TROUPE_ASSIGN(const std::string address,
                store.get(options.label + "/" + std::to_string(1 - options.self), kPatience));
  TROUPE_RETURN_IF_ERROR(raw->connect(address));
  return std::unique_ptr<BenchEnd>(std::make_unique<RawEnd>(std::move(raw), options.most_bytes));
}

}  // namespace

Result<std::unique_ptr<BenchEnd>> create_bench_end(const BenchEndOptions& options, KvStore& store) {
  if (options.raw) return create_raw_end(options, store);
  UcxChannelOptions ucx;
  ucx.name = options.label;
  ucx.self = SlotId(options.self);
  ucx.transports = options.transports;
  ucx.shared_segment = options.shared_segment;
  TROUPE_ASSIGN(auto channel, create_ucx_channel(ucx));
  TROUPE_RETURN_IF_ERROR(channel->connect({SlotId(1 - options.self)}, store, kPatience));
  return std::unique_ptr<BenchEnd>(std::make_unique<ChannelEnd>(std::move(channel), options));
}

}  // namespace troupe
