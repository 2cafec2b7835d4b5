#include "transport/channel/inbox.h"

#include "transport/channel/message.h"

namespace troupe {

void Inbox::changed() {
  changes_.fetch_add(1);
  changed_.notify_all();
}

/// One of those who wait drives the transport; the others are woken by what it brings in, or to take its place.
void Inbox::wait(std::unique_lock<std::mutex>& lock, SlotId from, const MessageTag& tag,
                 std::chrono::steady_clock::time_point until, InboxDriver* driver) {
  if (driver == nullptr || driving_) {
    changed_.wait_until(lock, until);
    return;
  }
  driving_ = true;
  const uint64_t seen = changes_.load();
  lock.unlock();
  driver->drive(from, tag, seen, until);
  lock.lock();
  driving_ = false;
  changed_.notify_all();
}

Status Inbox::usable_locked(SlotId peer, const MessageTag& tag) const {
  if (aborted_) return channel_aborted();
  const auto lost = lost_.find(peer);
  if (lost != lost_.end()) return peer_is_lost(peer, self_.value_or(peer), tag, lost->second);
  return {};
}

Status Inbox::usable(SlotId peer, const MessageTag& tag) const {
  std::lock_guard lock(mutex_);
  return usable_locked(peer, tag);
}

/// Payloads are handed to the caller, who lets go of them outside the lock: their owners may be anything.
void Inbox::enter_generation(uint32_t generation, std::vector<Payload>& dropped) {
  if (generation <= generation_) return;
  generation_ = generation;
  for (auto it = messages_.begin(); it != messages_.end();) {
    Message& message = it->second;
    // A message that is still arriving is kept for whoever writes its bytes; complete() drops it.
    if (it->first.tag.generation >= generation || message.state == Message::State::kArriving) {
      ++it;
      continue;
    }
    if (message.state == Message::State::kComplete) ++counters_.stale_dropped;
    dropped.push_back(std::move(message.payload));
    it = messages_.erase(it);
  }
}

Inbox::Admission Inbox::admit(SlotId from, const MessageTag& tag, const MessageHeader& header) {
  std::lock_guard lock(mutex_);
  Admission admission;
  Message& message = messages_[Key{tag, from}];
  if (aborted_ || tag.generation < generation_ || message.state != Message::State::kExpected) {
    ++counters_.stale_dropped;
    if (message.state == Message::State::kExpected) messages_.erase(Key{tag, from});
    return admission;
  }
  message.state = Message::State::kArriving;
  message.header = header;
  admission.wanted = true;
  admission.landing = std::move(message.payload);
  return admission;
}

void Inbox::complete(SlotId from, const MessageTag& tag, Payload payload) {
  Payload dropped;
  {
    std::lock_guard lock(mutex_);
    const auto found = messages_.find(Key{tag, from});
    if (found == messages_.end() || aborted_ || tag.generation < generation_) {
      ++counters_.stale_dropped;
      dropped = std::move(payload);
      if (found != messages_.end()) messages_.erase(found);
      return;
    }
    found->second.payload = std::move(payload);
    found->second.state = Message::State::kComplete;
  }
  changed();
}

void Inbox::fail(SlotId from, const MessageTag& tag, Error error) {
  {
    std::lock_guard lock(mutex_);
    const auto found = messages_.find(Key{tag, from});
    if (found == messages_.end()) return;
    found->second.state = Message::State::kFailed;
    found->second.error = std::move(error);
  }
  changed();
}

Status Inbox::expect(SlotId from, const MessageTag& tag, Payload landing) {
  std::vector<Payload> dropped;
  std::lock_guard lock(mutex_);
  TROUPE_RETURN_IF_ERROR(usable_locked(from, tag));
  if (tag.generation < generation_) return generation_ended(tag);
  enter_generation(tag.generation, dropped);
  Message& message = messages_[Key{tag, from}];
  dropped.push_back(std::move(landing));
  if (message.state == Message::State::kExpected) std::swap(message.payload, dropped.back());
  return {};
}

Result<Payload> Inbox::receive(SlotId from, const MessageTag& tag, const MessageHeader& expected,
                               std::chrono::milliseconds timeout, InboxDriver* driver) {
  std::vector<Payload> dropped;
  std::unique_lock lock(mutex_);
  if (aborted_) return channel_aborted();
  if (tag.generation < generation_) return generation_ended(tag);
  enter_generation(tag.generation, dropped);
  const Key key{tag, from};
  const auto ready = [&] {
    const auto found = messages_.find(key);
    const bool there = found != messages_.end() && found->second.state >= Message::State::kComplete;
    return there || !usable_locked(from, tag).ok();
  };
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!ready()) {
    if (std::chrono::steady_clock::now() >= until) return receive_timed_out(from, self_.value_or(from), tag, timeout);
    wait(lock, from, tag, until, driver);
  }
  const auto found = messages_.find(key);
  if (aborted_ || found == messages_.end() || found->second.state < Message::State::kComplete)
    return usable_locked(from, tag).error();
  Message message = std::move(found->second);
  messages_.erase(found);
  if (message.state == Message::State::kFailed) return message.error;
  ++counters_.messages_received;
  counters_.bytes_received += message.payload.bytes;
  lock.unlock();
  TROUPE_RETURN_IF_ERROR(
      check_header(from, self_.value_or(from), tag, message.header, message.payload.bytes, expected));
  return std::move(message.payload);
}

void Inbox::lose(SlotId peer, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    lost_.try_emplace(peer, reason);
  }
  changed();
}

std::optional<std::string> Inbox::loss_of(SlotId peer) const {
  std::lock_guard lock(mutex_);
  const auto lost = lost_.find(peer);
  return lost == lost_.end() ? std::nullopt : std::optional(lost->second);
}

void Inbox::abort() {
  std::vector<Payload> dropped;
  {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    for (auto& [key, message] : messages_) {
      if (message.state != Message::State::kArriving) dropped.push_back(std::move(message.payload));
    }
  }
  changed();
}

ChannelCounters Inbox::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace troupe
