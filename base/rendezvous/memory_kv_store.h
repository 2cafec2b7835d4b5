#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/rendezvous/kv_store.h"

namespace troupe {

/// A KvStore in this process's memory: what the driver keeps behind its rendezvous service, and what tests meet
/// through. Thread-safe; a waiting `get` is woken by the `set` that it waits for.
class MemoryKvStore final : public KvStore {
 public:
  Status set(const std::string& key, const std::string& value) override;
  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override;
  Result<int64_t> add(const std::string& key, int64_t amount) override;
  Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) override;
  Result<bool> check(const std::vector<std::string>& keys) override;
  Result<bool> erase(const std::string& key) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace troupe
