#include "cli/loop_program.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

using namespace troupe::cli;
using std::chrono::seconds;
namespace fs = std::filesystem;

namespace {

/// A shell that tells its pid and stops itself; `then` is what it does when it goes on.
struct StoppedLoop {
  explicit StoppedLoop(const std::string& before, const std::string& then)
      : told(fs::temp_directory_path() / ("troupe_loop_program_" + std::to_string(::getpid()))) {
    fs::remove(told);
    auto started = LoopProgram::start(
        {"/bin/sh", "-c", before + "; echo $$ > " + told.string() + "; kill -STOP $$; " + then}, "unix:none", "job");
    REQUIRE(started.ok());
    program = std::move(*started);
    await([this] { return state() == 'T'; });
  }
  ~StoppedLoop() { fs::remove(told); }
  /// As /proc has it; 0 when there is no such process.
  char state() const {
    int pid = 0;
    std::ifstream(told) >> pid;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name;
    char letter = 0;
    return pid > 0 && file >> number >> name >> letter ? letter : '\0';
  }
  template <typename Condition>
  static void await(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    while (!condition()) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a poll of another process, bounded by the deadline
    }
  }

  fs::path told;
  std::unique_ptr<LoopProgram> program;
};

}  // namespace

TEST_CASE("A loop that is stopped goes on when its job has ended, and leaves by itself") {
  StoppedLoop loop("true", "exit 0");
  CHECK_FALSE(loop.program->leave(seconds(20)).has_value());
}

TEST_CASE("A signal that is passed on reaches a loop that is stopped") {
  StoppedLoop loop("trap 'exit 75' TERM", "while :; do sleep 0.01; done");
  loop.program->signal(SIGTERM);
  StoppedLoop::await([&] { return loop.state() == '\0'; });
  const auto left = loop.program->leave(seconds(20));
  REQUIRE(left.has_value());
  CHECK(left->find("exited with status 75") != std::string::npos);
}
