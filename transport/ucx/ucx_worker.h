#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe {

struct UcxWorkerOptions {
  std::string interface_address;  // restricts TCP to the device that owns this address; empty: UCX decides
  std::string transports;         // UCX's list, such as "tcp"; empty: all that it finds
  std::vector<std::pair<std::string, std::string>> settings;  // further ones, by UCX's names without UCX_
  uint64_t features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
};

/// A UCX context with one worker, set up so that a peer's death is an error of its transfers and nothing more: shared
/// memory transports are told to support error handling. Calls of the worker are serialised by who uses it; endpoints
/// are closed before it is destroyed.
class UcxWorker {
 public:
  static Result<std::unique_ptr<UcxWorker>> create(const UcxWorkerOptions& options);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h get() const { return worker_; }
  /// What peers connect to: bytes.
  const std::string& address() const { return address_; }
  /// Leaves worker and context to the process's end instead of destroying them.
  void abandon();
  /// Readable when an armed worker has something to do.
  int event() const { return event_; }
  /// An endpoint in the error handling mode of peers that may die.
  Result<ucp_ep_h> connect(const std::string& address, ucp_err_handler_cb_t on_error, void* argument) const;

 private:
  UcxWorker() = default;
  Status open_context(const UcxWorkerOptions& options);
  Status open_worker();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_ = -1;
  std::string address_;
};

Error ucx_error(const std::string& what, ucs_status_t status);

}  // namespace troupe
