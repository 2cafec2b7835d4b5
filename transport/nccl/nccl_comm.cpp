#include "transport/nccl/nccl_comm.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

namespace troupe {
namespace {
constexpr std::chrono::milliseconds kEndTimeout{5000};
}

Error NcclComm::error(ncclResult_t result) const {
  const std::string text =
      options_.name + ", rank " + std::to_string(options_.rank) + ": NCCL: " + ncclGetErrorString(result);
  return result == ncclRemoteError || result == ncclSystemError ? unavailable(text) : internal_error(text);
}

Result<std::unique_ptr<NcclComm>> NcclComm::create(const NcclCommOptions& options, KvStore& store) {
  ncclUniqueId id;
  const std::string key = options.name + "/nccl";
  if (options.rank == 0) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) return internal_error(options.name + ": NCCL: " + ncclGetErrorString(result));
    TROUPE_RETURN_IF_ERROR(store.set(key, std::string(id.internal, sizeof id.internal)));
  } else {
    TROUPE_ASSIGN(const std::string text, store.get(key, options.timeout));
    if (text.size() != sizeof id.internal) return data_loss("rendezvous: key '" + key + "' holds no NCCL id");
    std::memcpy(id.internal, text.data(), sizeof id.internal);
  }
  std::unique_ptr<NcclComm> communicator(new NcclComm(options));
  TROUPE_RETURN_IF_ERROR(communicator->connect(id));
  return communicator;
}

Status NcclComm::connect(const ncclUniqueId& id) {
  const cudaError_t selected = cudaSetDevice(options_.device);
  if (selected != cudaSuccess)
    return internal_error("CUDA device " + std::to_string(options_.device) + ": " + cudaGetErrorString(selected));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::unique_lock lock(mutex_);
  const ncclResult_t result = ncclCommInitRankConfig(&comm_, options_.size, id, options_.rank, &config);
  return settle(lock, result, options_.timeout);
}

/// Looks at the communicator in short holds of the lock, so that abort_all gets in between.
Status NcclComm::settle(std::unique_lock<std::mutex>& lock, ncclResult_t result, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (result == ncclInProgress) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    if (aborted_) return make_error(ErrorCode::kAborted, options_.name + ": the communicator was aborted");
    if (std::chrono::steady_clock::now() > deadline) {
      return deadline_exceeded(options_.name + ", rank " + std::to_string(options_.rank) +
                               ": peers did not answer within " + std::to_string(timeout.count()) + " ms");
    }
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
    if (asked != ncclSuccess) return error(asked);
  }
  if (result != ncclSuccess) return error(result);
  return {};
}

Status NcclComm::enqueue(const std::function<ncclResult_t(ncclComm_t)>& calls) {
  std::unique_lock lock(mutex_);
  if (aborted_) return make_error(ErrorCode::kAborted, options_.name + ": the communicator was aborted");
  ncclResult_t state = ncclSuccess;
  ncclResult_t result = ncclCommGetAsyncError(comm_, &state);
  if (result != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
    return error(result != ncclSuccess ? result : state);
  result = ncclGroupStart();
  if (result != ncclSuccess) return error(result);
  const ncclResult_t called = calls(comm_);
  result = ncclGroupEnd();
  if (called != ncclSuccess && called != ncclInProgress) return error(called);
  return settle(lock, result, options_.timeout);
}

void NcclComm::abort_all(const std::vector<NcclComm*>& communicators) {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (NcclComm* communicator : communicators) locks.emplace_back(communicator->mutex_);
  ncclGroupStart();
  for (NcclComm* communicator : communicators) {
    if (communicator->comm_ != nullptr) ncclCommAbort(communicator->comm_);
    communicator->comm_ = nullptr;
    communicator->aborted_ = true;
  }
  ncclGroupEnd();
}

NcclComm::~NcclComm() {
  std::unique_lock lock(mutex_);
  if (comm_ == nullptr) return;
  const Status ended = settle(lock, ncclCommFinalize(comm_), kEndTimeout);
  if (ended.ok()) {
    ncclCommDestroy(comm_);
  } else {
    ncclCommAbort(comm_);
  }
}

}  // namespace troupe
