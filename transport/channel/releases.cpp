#include "transport/channel/releases.h"

#include <algorithm>

#include "transport/channel/pooled_allocator.h"

namespace troupe {
namespace {
constexpr size_t kBatchTickets = 64;
}

struct Releases::Held {
  std::shared_ptr<Releases> releases;
  SlotId from;
  uint64_t ticket;
  size_t bytes;
  std::shared_ptr<const void> owner;

  ~Held() {
    owner.reset();
    releases->let_go(from, ticket, bytes);
  }
};

Releases::Releases(size_t batch_bytes, std::function<void()> wake)
    : batch_bytes_(batch_bytes),
      memory_(std::make_shared<std::pmr::synchronized_pool_resource>()),
      wake_(std::move(wake)) {}

std::shared_ptr<Releases> Releases::create(size_t batch_bytes, std::function<void()> wake) {
  return std::shared_ptr<Releases>(new Releases(batch_bytes, std::move(wake)));
}

Payload Releases::track(SlotId from, uint64_t ticket, Payload payload) {
  {
    std::lock_guard lock(mutex_);
    ++senders_[from].holding;
    held_bytes_ += payload.bytes;
    peak_held_bytes_ = std::max(peak_held_bytes_, held_bytes_);
  }
  auto* held = PooledAllocator<Held>(memory_).allocate(1);
  new (held) Held{shared_from_this(), from, ticket, payload.bytes, std::move(payload.owner)};
  const auto memory = memory_;
  payload.owner = std::shared_ptr<const void>(
      held,
      [memory](const Held* gone) {
        gone->~Held();
        PooledAllocator<Held>(memory).deallocate(const_cast<Held*>(gone), 1);
      },
      PooledAllocator<Held>(memory_));
  return payload;
}

bool Releases::due(const Sender& sender) const {
  if (sender.tickets.empty() || sender.forgotten) return false;
  return sender.stalled || sender.bytes >= batch_bytes_ || sender.tickets.size() >= kBatchTickets;
}

void Releases::let_go(SlotId from, uint64_t ticket, size_t bytes) {
  bool now_due = false;
  {
    std::lock_guard lock(mutex_);
    held_bytes_ -= bytes;
    Sender& sender = senders_[from];
    --sender.holding;
    if (sender.forgotten) return;
    sender.tickets.push_back(ticket);
    sender.bytes += bytes;
    now_due = due(sender);
  }
  std::lock_guard lock(wake_mutex_);
  if (now_due && wake_) wake_();
}

void Releases::give_back(SlotId from, uint64_t ticket) {
  std::lock_guard lock(mutex_);
  Sender& sender = senders_[from];
  sender.tickets.push_back(ticket);
}

void Releases::stalled(SlotId sender) {
  std::lock_guard lock(mutex_);
  senders_[sender].stalled = true;
}

void Releases::take_due(SlotId sender, size_t most, std::vector<uint64_t>& tickets) {
  std::lock_guard lock(mutex_);
  const auto found = senders_.find(sender);
  if (found == senders_.end() || !due(found->second)) return;
  Sender& from = found->second;
  const auto end = from.tickets.begin() + static_cast<std::ptrdiff_t>(std::min(most, from.tickets.size()));
  tickets.assign(from.tickets.begin(), end);
  from.tickets.erase(from.tickets.begin(), end);
  if (!from.tickets.empty()) return;
  from.bytes = 0;
  if (from.holding == 0) from.stalled = false;
}

void Releases::forget(SlotId sender) {
  std::lock_guard lock(mutex_);
  Sender& from = senders_[sender];
  from.forgotten = true;
  from.tickets.clear();
}

void Releases::close() {
  std::lock_guard lock(wake_mutex_);
  wake_ = nullptr;
}

void Releases::count(ChannelCounters& counters) const {
  std::lock_guard lock(mutex_);
  counters.held_bytes = held_bytes_;
  counters.peak_held_bytes = peak_held_bytes_;
}

}  // namespace troupe
