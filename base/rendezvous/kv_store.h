#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

/// A small key-value store that the ranks of a job meet through (the rendezvous of worlds and boundaries). Implemented
/// over the authenticated control plane, and in memory for tests. Keys carry the generation as a prefix. Thread-safe.
namespace troupe {

class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual Status set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key exists. DeadlineExceeded names the key.
  virtual Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  /// Adds to a decimal counter (missing: 0) and returns the new value.
  virtual Result<int64_t> add(const std::string& key, int64_t amount) = 0;
  /// Stores `desired` if the value is `expected` (or missing and `expected` empty); returns the value afterwards.
  virtual Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                          const std::string& desired) = 0;
  virtual Result<bool> check(const std::vector<std::string>& keys) = 0;
  virtual Result<bool> erase(const std::string& key) = 0;
};

}  // namespace troupe
