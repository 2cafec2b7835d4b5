#include "tests/transport/test_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

namespace troupe::testing {

int fork_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const int pid = fork();
  if (pid != 0) return pid;
  int status = 99;
  try {
    status = body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "child: %s\n", e.what());
  }
  _exit(status);
}

int wait_for_exit(int pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool wait_for_stop(int pid) {
  int status = 0;
  while (waitpid(pid, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  return WIFSTOPPED(status);
}

}  // namespace troupe::testing
