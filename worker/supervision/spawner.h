#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

/// Starts processes and learns of their end.
namespace troupe::worker {

struct SpawnSpec {
  std::vector<std::string> arguments;              // [0]: the program's path
  std::map<std::string, std::string> environment;  // added to the worker's own
  std::string output_path;                         // appended to; standard output and standard error. Empty: our own
  std::string standard_output_path;                // standard output goes here instead, when not empty
  int inherited_fd = -1;                           // left open in the child as descriptor 3
};

/// Owns one thread that forks, watches (pidfd) and reaps. That thread must live as long as its children: the kernel's
/// parent-death signal follows the forking *thread*, and it is what ends every host when the worker is killed. Children
/// have their own process group, so that a terminal's Ctrl-C does not reach them. Thread-safe.
class Spawner {
 public:
  /// Called on the spawner's thread.
  using Reaped = std::function<void(int pid, int exit_code, int signal)>;
  static Result<std::unique_ptr<Spawner>> create(Reaped reaped);
  /// Kills (SIGKILL) and reaps what is left.
  ~Spawner();

  /// Blocks until the child has started its program or failed to.
  Result<int> spawn(const SpawnSpec& spec);
  /// To the process group. Safe against reuse of the id: only children that are not yet reaped are signalled.
  void signal(int pid, int number);

 private:
  struct Request;
  explicit Spawner(Reaped reaped, int wake) : reaped_(std::move(reaped)), wake_(wake) {}
  void run();
  void reap_ended();
  void watch();

  Reaped reaped_;
  int wake_;  // eventfd
  std::mutex mutex_;
  std::vector<Request*> requests_;
  std::map<int, int> children_;  // pid -> pidfd
  bool closing_ = false;
  std::thread thread_;
};

/// The path that a shell would start for `name` is not searched: `name` is taken as it is. "NotFound" names it, as
/// "the WHAT PATH", when it cannot be executed.
Status check_program(const std::string& path, const std::string& what = "actor program");

}  // namespace troupe::worker
