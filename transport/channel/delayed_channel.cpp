#include "transport/channel/delayed_channel.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

class DelayedChannel final : public Channel {
 public:
  DelayedChannel(std::unique_ptr<Channel> inner, const MessageDelays& delays)
      : inner_(std::move(inner)), most_(delays.most), random_(delays.seed), sender_([this] { run(); }) {}
  ~DelayedChannel() override {
    stop();
    sender_.join();
  }

  bool in_process() const override { return inner_->in_process(); }
  Status connect(const std::vector<SlotId>& peers, KvStore& store, std::chrono::milliseconds timeout) override {
    return inner_->connect(peers, store, timeout);
  }
  SendBuffer buffer_for(SlotId to, size_t bytes) override { return inner_->buffer_for(to, bytes); }
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, Payload payload) override {
    {
      std::lock_guard lock(mutex_);
      if (failed_) return *failed_;
      if (stopped_) return make_error(ErrorCode::kAborted, "the channel was aborted: " + tag.to_string());
      if (lost_.contains(to))
        return unavailable("slot " + std::to_string(to.value) +
                           " is lost, the control plane said so: " + tag.to_string());
      const auto delay = std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, most_.count())(random_));
      queue_.emplace(Clock::now() + delay, Message{to, tag, header, std::move(payload)});
    }
    changed_.notify_all();
    return {};
  }
  Status post_receive(SlotId from, const MessageTag& tag, size_t bytes) override {
    return inner_->post_receive(from, tag, bytes);
  }
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          std::chrono::milliseconds timeout) override {
    return inner_->receive(from, tag, expected, timeout);
  }
  Status flush(std::chrono::milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, deadline, [this] { return (queue_.empty() && !sending_) || failed_; }))
        return deadline_exceeded("delayed messages have not left within " + std::to_string(timeout.count()) + " ms");
      if (failed_) return *failed_;
    }
    return inner_->flush(std::max(std::chrono::milliseconds(1),
                                  std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now())));
  }
  void peer_lost(SlotId peer) override {
    {
      std::lock_guard lock(mutex_);
      lost_.insert(peer);
    }
    inner_->peer_lost(peer);
  }
  void abort() override {
    stop();
    inner_->abort();
  }
  ChannelCounters counters() const override { return inner_->counters(); }

 private:
  struct Message {
    SlotId to;
    MessageTag tag;
    MessageHeader header;
    Payload payload;
  };

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (queue_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto first = queue_.begin();
      if (first->first > Clock::now()) {
        changed_.wait_until(lock, first->first);
        continue;
      }
      Message message = std::move(first->second);
      queue_.erase(first);
      sending_ = true;
      lock.unlock();
      const Status sent = inner_->send(message.to, message.tag, message.header, std::move(message.payload));
      lock.lock();
      sending_ = false;
      if (!sent.ok()) failed_ = sent.error();
      changed_.notify_all();
    }
  }

  const std::unique_ptr<Channel> inner_;
  const std::chrono::microseconds most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::multimap<Clock::time_point, Message> queue_;
  std::optional<Error> failed_;  // of a message that could not be sent; the next call says so
  std::set<SlotId> lost_;
  bool stopped_ = false, sending_ = false;
  std::thread sender_;
};

}  // namespace

std::unique_ptr<Channel> create_delayed_channel(std::unique_ptr<Channel> inner, const MessageDelays& delays) {
  return std::make_unique<DelayedChannel>(std::move(inner), delays);
}

}  // namespace troupe
