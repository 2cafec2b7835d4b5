#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory_resource>
#include <mutex>
#include <optional>

#include "transport/channel/channel.h"

namespace troupe {

/// Moves a transport on behalf of a caller that waits for a message: the thread that waits does the work, instead of
/// being woken by another.
class InboxDriver {
 public:
  virtual ~InboxDriver() = default;
  /// Returns when the inbox's changes() is no longer `seen`, or at `until`. One caller at a time; no lock is held.
  virtual void drive(SlotId from, const MessageTag& awaited, uint64_t seen,
                     std::chrono::steady_clock::time_point until) = 0;
};

/// The receiving half of a channel: messages that have arrived, are arriving or are announced, and the callers that
/// wait for them. What carries the bytes fills it; receive() empties it. Knows no transport, so that it is tested
/// without one. Thread-safe.
///
/// The newest generation that receive() or expect() named is the current one: messages of older ones are dropped and
/// counted.
class Inbox {
 public:
  /// `self` is for errors; empty: the same slot as the sender's.
  explicit Inbox(std::optional<SlotId> self) : self_(self) {}

  /// What to do with a message whose header has come in.
  struct Admission {
    bool wanted = false;  // false: late or sent twice; drop its bytes
    Payload landing;      // where expect() wants the bytes; empty when nobody said so
  };
  /// A header has arrived; its bytes follow with complete() or fail().
  Admission admit(SlotId from, const MessageTag& tag, const MessageHeader& header);
  void complete(SlotId from, const MessageTag& tag, Payload payload);
  /// The bytes of an admitted message will not come.
  void fail(SlotId from, const MessageTag& tag, Error error);

  /// Announces a receive; `landing` may be empty.
  Status expect(SlotId from, const MessageTag& tag, Payload landing);
  /// As Channel::receive. A message that came in completely is still given out when its sender has been lost since.
  Result<Payload> receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                          std::chrono::milliseconds timeout, InboxDriver* driver = nullptr);
  /// Grows with everything that could end a wait.
  uint64_t changes() const { return changes_.load(); }

  void lose(SlotId peer, const std::string& reason);
  /// Why the peer is lost, if it is.
  std::optional<std::string> loss_of(SlotId peer) const;
  void abort();
  /// Aborted, or `peer` lost: the error that says so.
  Status usable(SlotId peer, const MessageTag& tag) const;
  /// The receiving half of the counters.
  ChannelCounters counters() const;

 private:
  struct Key {
    MessageTag tag;
    SlotId from;
    auto operator<=>(const Key&) const = default;
  };
  struct Message {
    enum class State { kExpected, kArriving, kComplete, kFailed } state = State::kExpected;
    MessageHeader header;
    Payload payload;  // of an expected message: where it is to land
    Error error;
  };
  Status usable_locked(SlotId peer, const MessageTag& tag) const;
  void enter_generation(uint32_t generation, std::vector<Payload>& dropped);
  void wait(std::unique_lock<std::mutex>& lock, SlotId from, const MessageTag& tag,
            std::chrono::steady_clock::time_point until, InboxDriver* driver);
  void changed();

  const std::optional<SlotId> self_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<uint64_t> changes_{0};
  bool driving_ = false;
  bool aborted_ = false;
  uint32_t generation_ = 0;
  std::map<SlotId, std::string> lost_;
  std::pmr::unsynchronized_pool_resource
      nodes_;  // of messages_: nothing is allocated once as many have been there before
  std::pmr::map<Key, Message> messages_{&nodes_};
  ChannelCounters counters_;
};

}  // namespace troupe
