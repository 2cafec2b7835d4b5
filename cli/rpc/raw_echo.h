#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

/// Plain gRPC without anything of ours: a service that gives back what it gets, and a client of it, for benches.
namespace troupe::cli {

/// A process that serves the service at "unix:PATH" until it is destroyed or this process dies.
class RawEchoServer {
 public:
  /// Forks: to be made before gRPC is used and before any thread is started.
  static Result<std::unique_ptr<RawEchoServer>> start(const std::string& address);
  /// Kills it and waits for its end.
  ~RawEchoServer();

 private:
  explicit RawEchoServer(int pid) : pid_(pid) {}
  int pid_;
};

/// One thread.
class RawEchoClient {
 public:
  /// Connects to each server; DeadlineExceeded when one is not there within 10 s.
  static Result<std::unique_ptr<RawEchoClient>> connect(const std::vector<std::string>& addresses);
  virtual ~RawEchoClient() = default;
  /// A blocking unary call to the first server.
  virtual Status call() = 0;
  /// A unary call to every server at once, on one completion queue; returns when all have answered.
  virtual Status fan_out() = 0;
};

}  // namespace troupe::cli
