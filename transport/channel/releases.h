#pragma once

#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "transport/channel/channel.h"

namespace troupe {

/// The receiver's side of credits: what has arrived and is still held, and the tickets that are due back to their
/// senders. Payloads may be let go of after their channel has ended. Thread-safe.
class Releases : public std::enable_shared_from_this<Releases> {
 public:
  /// Tickets of less than `batch_bytes` wait for company unless their sender is stalled. `wake` is called, under no
  /// lock, when tickets become due.
  static std::shared_ptr<Releases> create(size_t batch_bytes, std::function<void()> wake);

  /// The payload of a message that has arrived, which sends its ticket back when its holder lets go.
  Payload track(SlotId from, uint64_t ticket, Payload payload);
  /// A message that was dropped unread.
  void give_back(SlotId from, uint64_t ticket);
  /// The sender waits for tickets: each is due at once until it has all of them back.
  void stalled(SlotId sender);
  /// Moves at most `most` tickets into `tickets`, which is empty; leaves it empty when none are due.
  void take_due(SlotId sender, size_t most, std::vector<uint64_t>& tickets);
  /// Tickets are of no use to this sender any more.
  void forget(SlotId sender);
  /// The channel ends: `wake` is not called again.
  void close();
  void count(ChannelCounters& counters) const;

 private:
  struct Sender {
    std::vector<uint64_t> tickets;
    size_t bytes = 0;    // of tickets
    size_t holding = 0;  // messages of this sender that are still held
    bool stalled = false, forgotten = false;
  };
  struct Held;
  Releases(size_t batch_bytes, std::function<void()> wake);
  bool due(const Sender& sender) const;
  void let_go(SlotId from, uint64_t ticket, size_t bytes);

  const size_t batch_bytes_;
  const std::shared_ptr<std::pmr::synchronized_pool_resource> memory_;
  mutable std::mutex mutex_;
  std::mutex wake_mutex_;
  std::function<void()> wake_;  // under wake_mutex_
  std::map<SlotId, Sender> senders_;
  size_t held_bytes_ = 0, peak_held_bytes_ = 0;
};

}  // namespace troupe
