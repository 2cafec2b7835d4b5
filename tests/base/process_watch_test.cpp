#include "base/process_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

using namespace troupe;

namespace {

/// A child that waits to be killed, and what it says it is.
struct Child {
  Child() {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
      const std::string own = own_process();
      const bool told = write(ends[1], own.data(), own.size()) == static_cast<ssize_t>(own.size());
      close(ends[1]);
      if (told) pause();
      _exit(1);
    }
    close(ends[1]);
    char text[512];
    for (ssize_t n = 0; (n = read(ends[0], text, sizeof text)) > 0;) said.append(text, static_cast<size_t>(n));
    close(ends[0]);
  }
  ~Child() { end(); }
  void end() {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }
  int pid = 0;
  std::string said;
};

bool readable_within(int descriptor, int milliseconds) {
  pollfd event{descriptor, POLLIN, 0};
  return poll(&event, 1, milliseconds) == 1;
}

}  // namespace

TEST_CASE("The end of another process is seen, and one that has ended is not watched") {
  Child child;
  const auto watched = watch_process(child.said);
  REQUIRE(watched.ok());
  REQUIRE(*watched >= 0);
  CHECK_FALSE(readable_within(*watched, 0));
  child.end();
  CHECK(readable_within(*watched, 10000));
  close(*watched);
  const auto late = watch_process(child.said);
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("A process with the pid but another start is another process") {
  Child child;
  std::string earlier = child.said.substr(0, child.said.rfind(' ')) + " 1";
  CHECK_FALSE(watch_process(earlier).ok());
}

TEST_CASE("What cannot be watched from here is not") {
  CHECK(watch_process(own_process()).value() == -1);
  CHECK(watch_process("").value() == -1);
  Child child;
  std::istringstream fields(child.said);
  std::string boot, name_space, pid, start;
  fields >> boot >> name_space >> pid >> start;
  CHECK(watch_process("another-boot " + name_space + " " + pid + " " + start).value() == -1);
  CHECK(watch_process(boot + " pid:[1] " + pid + " " + start).value() == -1);
}

TEST_CASE("A process that was stopped is told from one that runs and from one that is gone") {
  Child child;
  CHECK_FALSE(is_stopped(child.pid));
  kill(child.pid, SIGSTOP);
  int status = 0;
  REQUIRE(waitpid(child.pid, &status, WUNTRACED) == child.pid);
  REQUIRE(WIFSTOPPED(status));
  CHECK(is_stopped(child.pid));
  kill(child.pid, SIGCONT);
  REQUIRE(waitpid(child.pid, &status, WCONTINUED) == child.pid);
  CHECK_FALSE(is_stopped(child.pid));
  const int pid = child.pid;
  child.end();
  CHECK_FALSE(is_stopped(pid));
}
