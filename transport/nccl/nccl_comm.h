#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/rendezvous/kv_store.h"
#include "base/result.h"

namespace troupe {

struct NcclCommOptions {
  std::string name;  // for errors and as key in the store: the same on all ranks, different for every communicator
  int rank = 0, size = 1;
  int device = 0;
  std::chrono::milliseconds timeout{60000};  // of the rendezvous and of each call's admission
};

/// One nonblocking NCCL communicator. NCCL is used without c10d's process group, whose watchdog ends the process when a
/// peer is gone and whose abort cannot take several communicators at once. enqueue() by one thread at a time;
/// abort_all() from any thread, also while an enqueue waits.
class NcclComm {
 public:
  /// Meets the other ranks through `store` and connects.
  static Result<std::unique_ptr<NcclComm>> create(const NcclCommOptions& options, KvStore& store);
  /// Ends the communicator with its peers; by abort when they do not answer within a few seconds.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  /// Makes `calls` as one NCCL group and returns when NCCL has taken them; they run on the stream that they name.
  /// Aborted after abort_all, Unavailable when NCCL has found a peer gone.
  Status enqueue(const std::function<ncclResult_t(ncclComm_t)>& calls);
  /// Aborts all communicators of a device as one group: one after the other could wait for each other's kernels for
  /// good.
  static void abort_all(const std::vector<NcclComm*>& communicators);

 private:
  explicit NcclComm(const NcclCommOptions& options) : options_(options) {}
  Status connect(const ncclUniqueId& id);
  Status settle(std::unique_lock<std::mutex>& lock, ncclResult_t result, std::chrono::milliseconds timeout);
  Error error(ncclResult_t result) const;

  const NcclCommOptions options_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // null after abort
  bool aborted_ = false;
};

}  // namespace troupe
