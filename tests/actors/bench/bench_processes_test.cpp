#include "actors/bench/bench_processes.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>

using namespace troupe;

namespace {

using Body = std::function<Status(const OnLine& say)>;

const Body kWellDone = [](const OnLine&) { return Status(); };
/// Waits longer than any test, and does not mind to be asked to end.
const Body kWaits = [](const OnLine& say) -> Status {
  say(std::to_string(::getpid()));
  ::alarm(120);
  for (;;) ::pause();
};

struct Ran {
  Status status;
  std::vector<std::string> lines;
  double seconds = 0;
};

Ran run(const std::vector<Body>& bodies) {
  Ran ran;
  const auto start = std::chrono::steady_clock::now();
  ran.status = run_processes(bodies, [&](const std::string& line) { ran.lines.push_back(line); });
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ran;
}

bool is_gone(const std::string& pid) { return ::kill(std::stoi(pid), 0) != 0 && errno == ESRCH; }

}  // namespace

TEST_CASE("what processes say is heard line by line until all have ended") {
  const Ran ran = run({[](const OnLine& say) {
                         for (int i = 0; i < 3; ++i) say("row " + std::to_string(i) + std::string(9000, '.'));
                         return Status();
                       },
                       kWellDone});
  REQUIRE(ran.status.ok());
  REQUIRE(ran.lines.size() == 3);
  CHECK(ran.lines[2] == "row 2" + std::string(9000, '.'));
}

TEST_CASE("a process that is killed ends the bench at once, and its signal is named") {
  const Ran ran = run({kWaits, [](const OnLine&) -> Status {
                         ::raise(SIGKILL);
                         return {};
                       }});
  REQUIRE_FALSE(ran.status.ok());
  CHECK(ran.status.error().code == ErrorCode::kUnavailable);
  CHECK(ran.status.error().message.find(" was killed by signal 9 (Killed)") != std::string::npos);
  CHECK(ran.seconds < 10);
  for (const std::string& pid : ran.lines) CHECK(is_gone(pid));
}

TEST_CASE("a process that fails ends the bench with its error") {
  const Ran ran = run({kWaits, [](const OnLine&) -> Status { return data_loss("3 bytes are wrong"); }});
  REQUIRE_FALSE(ran.status.ok());
  CHECK(ran.status.error().code == ErrorCode::kDataLoss);
  CHECK(ran.status.error().message == "3 bytes are wrong");
  CHECK(ran.seconds < 10);
}

TEST_CASE("an interrupt ends the bench and its processes at once, and later ones come through") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Ran ran = run({kWaits, [number](const OnLine& say) {
                           ::kill(::getppid(), number);
                           return kWaits(say);
                         }});
    REQUIRE_FALSE(ran.status.ok());
    CHECK(ran.status.error().code == ErrorCode::kCancelled);
    CHECK(ran.status.error().message == "interrupted");
    CHECK(ran.seconds < 10);
    for (const std::string& pid : ran.lines) CHECK(is_gone(pid));
  }
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  CHECK(::sigismember(&blocked, SIGINT) == 0);
}
