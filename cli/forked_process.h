#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

/// A process that goes on from a function of this program, for benches that need peers: it dies with this process.
namespace troupe::cli {

/// One thread. Text goes to and fro over a socket.
class ForkedProcess {
 public:
  /// `body` runs in the new process with its end of the socket; its result is the exit status. To be called before any
  /// thread is started and before gRPC is used.
  static Result<std::unique_ptr<ForkedProcess>> start(const std::function<int(int socket)>& body);
  /// Kills it if it still runs, and waits for its end.
  ~ForkedProcess();
  /// All that the process is told: to be called once.
  Status tell(const std::string& text);
  /// All that it says until its end; DeadlineExceeded when that does not come in time.
  Result<std::string> hear(std::chrono::milliseconds timeout);

 private:
  ForkedProcess(int pid, int socket) : pid_(pid), socket_(socket) {}
  int pid_, socket_;
};

/// What comes on `socket` until the other end is done. DeadlineExceeded when that is not in time.
Result<std::string> read_all(int socket, std::chrono::milliseconds timeout);
Status write_all(int socket, const std::string& text);

}  // namespace troupe::cli
