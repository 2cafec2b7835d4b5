#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

/// Plain gRPC without anything of ours: a service that gives back what it gets, and a client of it, for benches.
namespace troupe::cli {

/// A unary call a message, on the server's own threads; or one stream for all messages, its server a single thread that
/// polls its completion queue: the quickest there is.
enum class RawEchoKind { kUnary, kStream };

/// Serves at "unix:PATH", one client at a time, until this process is killed; the exit status when that cannot be.
int serve_raw_echo(RawEchoKind kind, const std::string& address);

/// One thread.
class RawEchoClient {
 public:
  /// Connects to each server; DeadlineExceeded when one is not there within 10 s.
  static Result<std::unique_ptr<RawEchoClient>> connect(RawEchoKind kind, const std::vector<std::string>& addresses);
  virtual ~RawEchoClient() = default;
  /// A message to the first server and back.
  virtual Status call() = 0;
  /// A message to every server at once; returns when all are back.
  virtual Status fan_out() = 0;
};

}  // namespace troupe::cli
