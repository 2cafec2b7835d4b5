#include "client/session.h"

#include <algorithm>
#include <random>
#include <utility>

#include "proto/rpc/error_message.h"
#include "proto/rpc/message_batch.h"
#include "proto/rpc/method_name.h"

namespace troupe::client {
namespace {

using std::chrono::milliseconds;
/// Calls on their way, more are refused.
constexpr size_t kMostWaiting = 65536;

/// Numbers that a loop before this one has not used.
uint64_t first_object() {
  std::random_device device;
  return (uint64_t{device() & 0x7fffffffU} << 32) + 1;
}

}  // namespace

Result<std::vector<wire::Answer>> CallSet::wait() {
  const std::shared_ptr<Session> session = std::exchange(session_, nullptr);
  const bool in_time = session->queue_->wait(done_, deadline_);
  session->forget(*this);
  std::lock_guard lock(mutex_);
  if (!in_time && !error_ && open_ > 0) {
    const auto at = static_cast<size_t>(std::find(answered_.begin(), answered_.end(), false) - answered_.begin());
    error_ = deadline_exceeded(session->name_of(names_[at]) + ": no answer in time");
  }
  if (error_) return *error_;
  return std::move(answers_);
}

Session::Session(Directory directory, milliseconds lease)
    : directory_(std::move(directory)), lease_(lease), last_object_(first_object()), next_renewal_(Clock::now()) {}

Session::~Session() {
  close();
  queue_.reset();  // its thread renews leases
}

Status Session::open(const Secrets& secrets, const std::string& name) {
  wire::LoopGreeting greeting;
  greeting.set_name(name);
  greeting.set_lease_ms(static_cast<uint32_t>(lease_.count()));
  queue_ = std::make_unique<EventQueue>([this] { renew_leases(); });
  std::lock_guard order(order_);
  links_.resize(directory_.addresses.size());
  for (size_t slot = 0; slot < links_.size(); ++slot) {
    if (directory_.addresses[slot].empty()) continue;
    LinkEvents events;
    events.answered = [this](wire::Answer& answer) { answered(answer); };
    events.lost = [this, slot](const Error& error) { lost(static_cast<int>(slot), error); };
    TROUPE_ASSIGN(links_[slot],
                  CallLink::open(directory_.addresses[slot], secrets, greeting, *queue_, std::move(events)));
  }
  return {};
}

void Session::close() {
  std::unordered_map<uint64_t, Waiting> waiting;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    waiting.swap(waiting_);
    held_.clear();
  }
  // Ahead of the links: their end is what a thread that polls wakes of.
  for (const auto& [id, one] : waiting) fail(one, cancelled("the job was closed by its loop"));
  std::lock_guard order(order_);
  for (auto& link : links_) link.reset();  // no event comes any more
}

Address Session::address(int group, int rank) const { return {group, rank, directory_.job.groups(group).slot(rank)}; }

std::vector<Address> Session::hosts() const {
  std::map<int, Address> by_slot;
  for (int g = 0; g < directory_.job.groups_size(); ++g)
    for (int r = 0; r < directory_.job.groups(g).slot_size(); ++r) {
      const Address at = address(g, r);
      by_slot.try_emplace(at.slot, at);
    }
  std::vector<Address> hosts;
  for (const auto& [slot, at] : by_slot) hosts.push_back(at);
  return hosts;
}

std::string Session::name_of(const CallSet::Name& name) const {
  return method_name(name.method) + " of " + directory_.job.groups(name.to.group).name() + "/" +
         std::to_string(name.to.rank);
}

std::shared_ptr<CallSet> Session::send(std::vector<Outgoing> calls, milliseconds timeout) {
  auto set = std::make_shared<CallSet>();
  set->deadline_ = Clock::now() + timeout;
  set->session_ = shared_from_this();
  set->open_ = calls.size();
  set->answered_.resize(calls.size());
  set->answers_.resize(
      static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [](const Outgoing& c) { return c.wanted; })));
  set->names_.reserve(calls.size());
  for (const Outgoing& call : calls) set->names_.push_back({call.call.arguments_case(), call.to});
  std::lock_guard order(order_);
  {
    std::lock_guard lock(mutex_);
    if (closed_) set->error_ = cancelled("the job was closed by its loop");
    for (size_t i = 0; i < calls.size(); ++i)
      if (const size_t size = calls[i].call.ByteSizeLong(); size > kLargestCallBytes)
        set->error_ = invalid_argument(name_of(set->names_[i]) + " takes " + std::to_string(size) +
                                       " bytes of arguments; valid: up to " + std::to_string(kLargestCallBytes));
    if (waiting_.size() + calls.size() > kMostWaiting)
      set->error_ = make_error(
          ErrorCode::kResourceExhausted,
          std::to_string(waiting_.size()) + " calls are on their way; valid: up to " + std::to_string(kMostWaiting));
    for (size_t i = 0; i < calls.size() && !set->error_; ++i)
      if (const auto at = lost_.find(calls[i].to.slot); at != lost_.end())
        set->error_ = wrap(at->second, name_of(set->names_[i]));
    if (set->error_) {
      queue_->finish(set->done_);
      return set;
    }
    set->first_id_ = last_id_ + 1;
    set->end_id_ = set->first_id_ + calls.size();
    size_t result = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      wire::Call& call = calls[i].call;
      call.set_id(++last_id_);
      call.set_generation(directory_.job.generation());
      call.set_group(calls[i].to.group);
      call.set_rank(calls[i].to.rank);
      call.set_timeout_ms(static_cast<uint32_t>(std::clamp<int64_t>(timeout.count(), 0, UINT32_MAX)));
      waiting_[last_id_] = {set, i, calls[i].wanted ? result++ : SIZE_MAX, calls[i].to.slot};
    }
  }
  bool behind = false;
  for (Outgoing& out : calls) {
    CallLink& link = *links_[static_cast<size_t>(out.to.slot)];
    link.call(std::move(out.call));
    behind = behind || link.behind();
  }
  if (behind) queue_->work_off([&] { return !any_behind(calls); });
  return set;
}

std::shared_ptr<CallSet> Session::refused(Error error) {
  auto set = std::make_shared<CallSet>();
  set->session_ = shared_from_this();
  set->error_ = std::move(error);
  queue_->finish(set->done_);
  return set;
}

void Session::answered(wire::Answer& answer) {
  Waiting waiting;
  {
    std::lock_guard lock(mutex_);
    const auto at = waiting_.find(answer.id());
    if (at == waiting_.end()) return;  // nobody waits any more
    waiting = std::move(at->second);
    waiting_.erase(at);
  }
  if (answer.has_error()) return fail(waiting, from_message(answer.error()));
  CallSet& set = *waiting.set;
  bool last;
  {
    std::lock_guard lock(set.mutex_);
    set.answered_[waiting.call] = true;
    if (waiting.result != SIZE_MAX) set.answers_[waiting.result].Swap(&answer);
    last = --set.open_ == 0;
  }
  if (last) queue_->finish(set.done_);
}

void Session::fail(const Waiting& waiting, Error error) {
  CallSet& set = *waiting.set;
  {
    std::lock_guard lock(set.mutex_);
    if (!set.error_) set.error_ = std::move(error);
  }
  queue_->finish(set.done_);
}

void Session::lost(int slot, const Error& error) {
  std::vector<Waiting> ended;
  {
    std::lock_guard lock(mutex_);
    lost_.emplace(slot, error);
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      if (at->second.slot != slot) {
        ++at;
        continue;
      }
      ended.push_back(std::move(at->second));
      at = waiting_.erase(at);
    }
  }
  for (const Waiting& one : ended) fail(one, wrap(error, name_of(one.set->names_[one.call])));
}

void Session::forget(const CallSet& set) {
  std::lock_guard lock(mutex_);
  for (uint64_t id = set.first_id_; id < set.end_id_; ++id) waiting_.erase(id);
}

bool Session::any_behind(const std::vector<Outgoing>& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [this](const Outgoing& out) { return links_[static_cast<size_t>(out.to.slot)]->behind(); });
}

std::set<int> Session::slots_of(int group) const {
  const auto& slots = directory_.job.groups(group).slot();
  return {slots.begin(), slots.end()};
}

void Session::hold(int group, uint64_t object) {
  std::lock_guard lock(mutex_);
  held_.insert({group, object});
}

void Session::drop(int group, uint64_t object) {
  std::lock_guard order(order_);
  {
    std::lock_guard lock(mutex_);
    if (held_.erase({group, object}) == 0) return;
  }
  for (int slot : slots_of(group))
    if (auto& link = links_[static_cast<size_t>(slot)]) link->release(object);
}

void Session::renew_leases() {
  std::map<int, std::vector<uint64_t>> by_slot;
  {
    std::lock_guard lock(mutex_);
    if (closed_ || Clock::now() < next_renewal_) return;
    next_renewal_ = Clock::now() + lease_ / 3;
    for (const auto& [group, object] : held_)
      for (int slot : slots_of(group)) by_slot[slot].push_back(object);
  }
  std::lock_guard order(order_);
  for (const auto& [slot, objects] : by_slot)
    if (auto& link = links_[static_cast<size_t>(slot)]) link->renew(objects);
}

}  // namespace troupe::client
