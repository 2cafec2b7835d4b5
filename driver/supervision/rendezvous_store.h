#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

/// The rendezvous store of one job: keys, counters and waiters with deadlines. Pure state machine; owner loop only.
namespace troupe::driver {

enum class StoreKind { kSet, kGet, kAdd, kCompareSet, kCheck, kErase };

struct StoreCall {
  StoreKind kind = StoreKind::kSet;
  std::vector<std::string> keys;  // one, or several for kCheck
  std::string value, expected;
  int64_t amount = 0;
  std::chrono::milliseconds timeout{0};
};

struct StoreAnswer {
  uint64_t call = 0;  // the number given with the call
  std::optional<Error> error;
  std::string value;
  int64_t number = 0;
  bool flag = false;
};

/// Sizes come from peers, so they are bounded: kLargestValueBytes a value, kLargestStoreBytes altogether.
class RendezvousStore {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kLargestValueBytes = 8u << 20;
  static constexpr size_t kLargestStoreBytes = 256u << 20;

  /// Returns the answers that this call makes possible: its own and those of waiters.
  std::vector<StoreAnswer> call(uint64_t number, const StoreCall& call, Time now);
  /// Answers the waiters whose deadline has passed (DeadlineExceeded, naming the key).
  std::vector<StoreAnswer> expire(Time now);
  /// Ends every wait, now and later (Cancelled).
  std::vector<StoreAnswer> close(const std::string& reason);
  std::optional<Time> next_deadline() const;

 private:
  struct Waiter {
    uint64_t call;
    std::string key;
    Time deadline;
    std::chrono::milliseconds timeout;
  };
  std::optional<Error> put(const std::string& key, std::string value, std::vector<StoreAnswer>& answers);

  std::map<std::string, std::string> values_;
  std::vector<Waiter> waiters_;
  size_t bytes_ = 0;
  std::optional<std::string> closed_;
};

}  // namespace troupe::driver
