#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

/// UCX's tag sends as they are, for two ends and one thread each: the yardstick of `troupe bench boundary`. Same
/// library, error handling and way of waiting as the UCX channel, and nothing else of it.
namespace troupe {

class RawTag {
 public:
  virtual ~RawTag() = default;
  virtual const std::string& address() const = 0;
  virtual Status connect(const std::string& address) = 0;
  /// Starts a transfer; `data` is valid until the wait for it has returned for it. At most a few dozen at a time.
  virtual Status post_send(const std::byte* data, size_t bytes) = 0;
  virtual Status post_receive(std::byte* data, size_t bytes) = 0;
  /// Waits for the oldest send, or receive, that was not waited for. Cancels nothing when the time runs out.
  virtual Status wait_sent(std::chrono::milliseconds timeout) = 0;
  virtual Status wait_received(std::chrono::milliseconds timeout) = 0;
};

/// `transports` as in UcxChannelOptions. `eager`: no rendezvous, whatever the size.
Result<std::unique_ptr<RawTag>> create_raw_tag(const std::string& transports, bool eager);

}  // namespace troupe
