#include "driver/supervision/rendezvous_store.h"

#include <algorithm>
#include <charconv>

namespace troupe::driver {
namespace {

std::optional<int64_t> decimal(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Error> RendezvousStore::put(const std::string& key, std::string value,
                                          std::vector<StoreAnswer>& answers) {
  const auto at = values_.find(key);
  const size_t before = at == values_.end() ? 0 : at->second.size() + key.size();
  if (value.size() > kLargestValueBytes || bytes_ - before + value.size() + key.size() > kLargestStoreBytes)
    return make_error(ErrorCode::kResourceExhausted, "rendezvous store: value of key '" + key + "' has " +
                                                         std::to_string(value.size()) + " bytes; at most " +
                                                         std::to_string(kLargestValueBytes) + " a value and " +
                                                         std::to_string(kLargestStoreBytes) + " a job are kept");
  bytes_ += value.size() + key.size() - before;
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (waiter->key == key) {
      StoreAnswer answer;
      answer.call = waiter->call;
      answer.value = value;
      answers.push_back(std::move(answer));
      waiter = waiters_.erase(waiter);
    } else {
      ++waiter;
    }
  }
  values_[key] = std::move(value);
  return std::nullopt;
}

std::vector<StoreAnswer> RendezvousStore::call(uint64_t number, const StoreCall& call, Time now) {
  std::vector<StoreAnswer> answers;
  StoreAnswer own;
  own.call = number;
  if (closed_) {
    own.error = cancelled("rendezvous store: " + *closed_);
    return {own};
  }
  if (call.keys.empty()) {
    own.error = invalid_argument("rendezvous store: a call without a key");
    return {own};
  }
  const std::string& key = call.keys.front();
  const auto at = values_.find(key);
  const bool exists = at != values_.end();
  switch (call.kind) {
    case StoreKind::kSet:
      own.error = put(key, call.value, answers);
      break;
    case StoreKind::kGet:
      if (!exists) {
        waiters_.push_back({number, key, now + call.timeout, call.timeout});
        return answers;
      }
      own.value = at->second;
      break;
    case StoreKind::kAdd: {
      const auto old = exists ? decimal(at->second) : std::optional<int64_t>(0);
      if (!old) {
        own.error = make_error(ErrorCode::kFailedPrecondition, "rendezvous store: key '" + key + "' holds no number");
        break;
      }
      own.number = *old + call.amount;
      own.error = put(key, std::to_string(own.number), answers);
      break;
    }
    case StoreKind::kCompareSet:
      if ((exists && at->second == call.expected) || (!exists && call.expected.empty())) {
        own.value = call.value;
        own.error = put(key, call.value, answers);
      } else {
        own.value = exists ? at->second : "";
      }
      break;
    case StoreKind::kCheck:
      own.flag =
          std::all_of(call.keys.begin(), call.keys.end(), [&](const std::string& k) { return values_.contains(k); });
      break;
    case StoreKind::kErase:
      own.flag = exists;
      if (exists) {
        bytes_ -= key.size() + at->second.size();
        values_.erase(at);
      }
      break;
  }
  answers.push_back(std::move(own));
  return answers;
}

std::vector<StoreAnswer> RendezvousStore::expire(Time now) {
  std::vector<StoreAnswer> answers;
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (waiter->deadline <= now) {
      StoreAnswer answer;
      answer.call = waiter->call;
      answer.error = deadline_exceeded("rendezvous store: nobody set key '" + waiter->key + "' within " +
                                       std::to_string(waiter->timeout.count()) + " ms");
      answers.push_back(std::move(answer));
      waiter = waiters_.erase(waiter);
    } else {
      ++waiter;
    }
  }
  return answers;
}

std::vector<StoreAnswer> RendezvousStore::close(const std::string& reason) {
  closed_ = reason;
  std::vector<StoreAnswer> answers;
  for (const Waiter& waiter : waiters_) {
    StoreAnswer answer;
    answer.call = waiter.call;
    answer.error = cancelled("rendezvous store: " + reason + " while key '" + waiter.key + "' was waited for");
    answers.push_back(std::move(answer));
  }
  waiters_.clear();
  return answers;
}

std::optional<RendezvousStore::Time> RendezvousStore::next_deadline() const {
  std::optional<Time> next;
  for (const Waiter& waiter : waiters_)
    if (!next || waiter.deadline < *next) next = waiter.deadline;
  return next;
}

}  // namespace troupe::driver
