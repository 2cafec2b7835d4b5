#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "proto/rpc/secrets.h"

/// The daemon of a node: registers with the driver, starts and watches actor hosts, reports their end.
namespace troupe::worker {

struct WorkerOptions {
  std::string node;
  std::string driver_address;
  Secrets secrets;                                   // paths; handed on to the hosts
  std::string actor_program;                         // never taken from the network
  std::map<std::string, std::string> environment;    // of every host, from the manifest
  std::chrono::milliseconds connect_timeout{30000};  // to reach the driver, first and again
  int64_t log_cap_bytes = 64 << 20;
};

/// Thread-safe. Hosts die with the worker, and when the driver's stream or lease is lost.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> create(WorkerOptions options);
  virtual ~Worker() = default;
  /// Serves the driver until it says leave, `request_stop` is called or it cannot be reached: Unavailable; refused: the
  /// driver's error.
  virtual Status run() = 0;
  /// Async-signal-unsafe, any thread: ends hosts (SIGTERM, SIGKILL) and makes run() return.
  virtual void request_stop() = 0;
};

}  // namespace troupe::worker
