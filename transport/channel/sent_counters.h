#pragma once

#include <atomic>

#include "transport/channel/channel.h"

namespace troupe {

/// The sending half of the counters, the same for every channel. Thread-safe.
class SentCounters {
 public:
  void sent(size_t bytes) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void copied(size_t bytes) { copied_.fetch_add(bytes, std::memory_order_relaxed); }
  void count(ChannelCounters& counters) const {
    counters.messages_sent = messages_.load(std::memory_order_relaxed);
    counters.bytes_sent = bytes_.load(std::memory_order_relaxed);
    counters.bytes_copied += copied_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> messages_{0}, bytes_{0}, copied_{0};
};

}  // namespace troupe
