#include "base/rendezvous/memory_kv_store.h"

#include <algorithm>
#include <charconv>

namespace troupe {

Status MemoryKvStore::set(const std::string& key, const std::string& value) {
  {
    std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
  return {};
}

Result<std::string> MemoryKvStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  if (!changed_.wait_until(lock, deadline, [&] { return values_.count(key) > 0; })) {
    return deadline_exceeded("rendezvous: key '" + key + "' was not set within " + std::to_string(timeout.count()) +
                             " ms");
  }
  return values_[key];
}

Result<int64_t> MemoryKvStore::add(const std::string& key, int64_t amount) {
  int64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    std::string& value = values_[key];
    const char* end = value.data() + value.size();
    if (!value.empty()) {
      const auto parsed = std::from_chars(value.data(), end, number);
      if (parsed.ec != std::errc() || parsed.ptr != end) {
        return invalid_argument("rendezvous: key '" + key + "' holds '" + value + "', which is no decimal counter");
      }
    }
    number += amount;
    value = std::to_string(number);
  }
  changed_.notify_all();
  return number;
}

Result<std::string> MemoryKvStore::compare_set(const std::string& key, const std::string& expected,
                                               const std::string& desired) {
  std::string now;
  {
    std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end() && !expected.empty()) return std::string();
    if (found != values_.end() && found->second != expected) return found->second;
    values_[key] = desired;
    now = desired;
  }
  changed_.notify_all();
  return now;
}

Result<bool> MemoryKvStore::check(const std::vector<std::string>& keys) {
  std::lock_guard lock(mutex_);
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values_.count(key) > 0; });
}

Result<bool> MemoryKvStore::erase(const std::string& key) {
  std::lock_guard lock(mutex_);
  return values_.erase(key) > 0;
}

}  // namespace troupe
