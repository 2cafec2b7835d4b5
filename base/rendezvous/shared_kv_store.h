#pragma once

#include "base/rendezvous/kv_store.h"

namespace troupe {

/// A KvStore in shared anonymous memory: made before fork(), it joins processes of one program, in benches and tests.
/// Small and of fixed size.
class SharedKvStore final : public KvStore {
 public:
  SharedKvStore();
  ~SharedKvStore() override;
  SharedKvStore(const SharedKvStore&) = delete;
  SharedKvStore& operator=(const SharedKvStore&) = delete;
  Status set(const std::string& key, const std::string& value) override;
  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override;
  Result<int64_t> add(const std::string& key, int64_t amount) override;
  Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) override;
  Result<bool> check(const std::vector<std::string>& keys) override;
  Result<bool> erase(const std::string& key) override;

 private:
  struct Table;
  class Lock;
  Table* table_;
};

}  // namespace troupe
