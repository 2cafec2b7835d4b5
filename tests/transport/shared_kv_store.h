#pragma once

#include <functional>
#include <memory>

#include "base/rendezvous/kv_store.h"

namespace troupe::testing {

/// A KvStore in shared anonymous memory: made before fork(), it joins the processes of one test. Small and of fixed
/// size.
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

/// Runs `body` in a forked child and returns its process id; the child exits with what `body` returns, or with 99 for
/// an exception.
int fork_child(const std::function<int()>& body);
/// The exit status of `pid`, or minus the signal that ended it.
int wait_for_exit(int pid);
/// Waits until `pid` has been stopped by a signal; false when it ended instead.
bool wait_for_stop(int pid);

}  // namespace troupe::testing
