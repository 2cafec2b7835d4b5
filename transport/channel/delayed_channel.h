#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "transport/channel/channel.h"

/// For tests: a channel whose messages leave late, each by a random time, so that they overtake each other. What a job
/// computes may not depend on it.
namespace troupe {

struct MessageDelays {
  uint64_t seed = 0;
  std::chrono::microseconds most{0};  // 0: no message is delayed
};

/// Owns `inner`, on which a thread of its own sends. Thread-safe as every channel; flush waits for what is still to
/// leave.
std::unique_ptr<Channel> create_delayed_channel(std::unique_ptr<Channel> inner, const MessageDelays& delays);

}  // namespace troupe
