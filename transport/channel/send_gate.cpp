#include "transport/channel/send_gate.h"

#include <algorithm>

namespace troupe {
namespace {

/// What a message costs a receiver however small it is.
constexpr size_t kLeastCharge = 128;
/// Wishes for messages that have not been put in yet; a receiver has one for each thread that waits.
constexpr size_t kMostWanted = 1024;

size_t charge(size_t bytes) { return std::max(bytes, kLeastCharge); }

}  // namespace

bool SendGate::fits(size_t bytes) const { return out_.empty() || outstanding_bytes_ + charge(bytes) <= credit_bytes_; }

void SendGate::push(Item item) {
  if (!open_for(item.payload.bytes)) ++waits_;
  queue_.push_back(std::move(item));
}

SendGate::Item SendGate::release(std::deque<Item>::iterator at) {
  Item item = std::move(*at);
  queue_.erase(at);
  item.header.ticket = next_ticket_++;
  out_[item.header.ticket].bytes = charge(item.payload.bytes);
  outstanding_bytes_ += charge(item.payload.bytes);
  return item;
}

std::optional<SendGate::Item> SendGate::next() {
  if (queue_.empty()) return std::nullopt;
  if (!wanted_.empty()) {
    const auto wanted = std::find_if(queue_.begin(), queue_.end(),
                                     [this](const Item& item) { return wanted_.contains(item.header.tag()); });
    if (wanted != queue_.end()) {
      wanted_.erase(wanted->header.tag());
      return release(wanted);
    }
  }
  if (!fits(queue_.front().payload.bytes)) return std::nullopt;
  return release(queue_.begin());
}

void SendGate::hold(uint64_t ticket, std::shared_ptr<const void> owner) {
  const auto found = out_.find(ticket);
  if (found != out_.end()) found->second.owner = std::move(owner);
}

void SendGate::retire(uint64_t ticket) {
  const auto found = out_.find(ticket);
  if (found == out_.end()) return;
  outstanding_bytes_ -= found->second.bytes;
  out_.erase(found);
}

void SendGate::want(const MessageTag& tag) {
  // A wish that came after its message had left is never met: the oldest make room.
  if (wanted_.size() >= kMostWanted) wanted_.erase(wanted_.begin());
  wanted_.insert(tag);
}

std::deque<SendGate::Item> SendGate::clear(std::vector<std::shared_ptr<const void>>& held) {
  for (auto& [ticket, out] : out_) {
    if (out.owner) held.push_back(std::move(out.owner));
  }
  out_.clear();
  outstanding_bytes_ = 0;
  wanted_.clear();
  return std::exchange(queue_, {});
}

}  // namespace troupe
