#include "cli/child_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::cli {

Result<pid_t> start_program(std::vector<std::string> command, int standard_error) {
  std::vector<char*> pointers;
  for (std::string& argument : command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (standard_error >= 0) posix_spawn_file_actions_adddup2(&actions, standard_error, STDERR_FILENO);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return not_found("cannot start " + command[0] + ": " + std::strerror(failed));
  return pid;
}

int wait_for_program(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace troupe::cli
