#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver/run/driver.h"
#include "worker/supervision/spawner.h"

/// The program of `troupe run --loop`: started when the job is, told where its driver is, ended with the job.
namespace troupe::cli {

/// Owner thread only. The program has our output streams and no input; it dies when this process does.
class LoopProgram {
 public:
  /// `arguments`: [0] is the program's path. TROUPE_DRIVER and TROUPE_JOB are set for it.
  static Result<std::unique_ptr<LoopProgram>> start(const std::vector<std::string>& arguments,
                                                    const std::string& driver, const std::string& job);
  /// Tells the driver when the program has left. One that leaves by a signal that was passed on to it, or behind it
  /// with status 0, 130 or 128 + the signal's number, has been stopped; with status 75 it has saved before.
  void look(driver::Driver& driver, const std::string& job);
  /// Passes a signal on, also to a program that is stopped (SIGSTOP): it goes on.
  void signal(int number);
  /// Gives the program time to leave by itself (one that is stopped goes on), then kills it. How it left, unless with
  /// status 0: "the loop PROGRAM exited with status 3".
  std::optional<std::string> leave(std::chrono::milliseconds timeout);

 private:
  struct Ended {
    int exit_code = 0, signal = 0;
    bool clean() const { return exit_code == 0 && signal == 0; }
  };
  /// What the spawner's thread tells.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Ended> ended;
  };
  LoopProgram() = default;
  std::string describe(const Ended& ended) const;
  driver::LoopEnd kind_of(const Ended& ended) const;

  std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with the spawner's thread
  std::unique_ptr<worker::Spawner> spawner_;
  std::string program_;
  int pid_ = -1;
  int signal_ = 0;  // the last that was passed on
  bool told_ = false;
};

}  // namespace troupe::cli
