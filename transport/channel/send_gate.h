#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <vector>

#include "transport/channel/wire_header.h"

namespace troupe {

/// The sender's side of credits towards one peer: which message may leave, which one waits. Messages leave in order
/// while the receiver holds no more than the credit; a larger one passes when it is alone; one that the receiver waits
/// for passes at once. Knows no transport and no clock. Owner only.
class SendGate {
 public:
  struct Item {
    WireHeader header;
    Payload payload;
  };
  explicit SendGate(size_t credit_bytes) : credit_bytes_(credit_bytes) {}

  /// Whether a message of `bytes` put in now would leave now.
  bool open_for(size_t bytes) const { return queue_.empty() && fits(bytes); }
  void push(Item item);
  /// The message that may leave now, with its ticket; nothing when none may.
  std::optional<Item> next();
  /// Keeps `owner` until the message's ticket comes back.
  void hold(uint64_t ticket, std::shared_ptr<const void> owner);
  /// The receiver has let go of the message. A ticket that is not out is ignored.
  void retire(uint64_t ticket);
  /// The receiver waits for the message with this tag, which may not have been put in yet.
  void want(const MessageTag& tag);
  /// Forgets everything and returns what waited; `held` gets what was kept for tickets that are out.
  std::deque<Item> clear(std::vector<std::shared_ptr<const void>>& held);

  size_t outstanding_bytes() const { return outstanding_bytes_; }
  size_t queued() const { return queue_.size(); }
  /// Messages that could not leave when they were put in.
  uint64_t waits() const { return waits_; }

 private:
  struct Out {
    size_t bytes = 0;
    std::shared_ptr<const void> owner;
  };
  bool fits(size_t bytes) const;
  Item release(std::deque<Item>::iterator at);

  const size_t credit_bytes_;
  std::deque<Item> queue_;
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::map<uint64_t, Out> out_{&nodes_};
  std::set<MessageTag> wanted_;
  size_t outstanding_bytes_ = 0;
  uint64_t next_ticket_ = 1, waits_ = 0;
};

}  // namespace troupe
