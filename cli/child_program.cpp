#include "cli/child_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace troupe::cli {
namespace {

[[noreturn]] void become(char* const* arguments, int standard_error, pid_t parent, int failure) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before: no signal would ever come
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (standard_error >= 0) ::dup2(standard_error, STDERR_FILENO);
  ::execv(arguments[0], arguments);
  const int why = errno;
  static_cast<void>(!::write(failure, &why, sizeof(why)));
  ::_exit(127);
}

}  // namespace

Result<pid_t> start_program(std::vector<std::string> command, int standard_error) {
  std::vector<char*> pointers;
  for (std::string& argument : command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int failure[2];  // stays empty when the program starts
  if (::pipe2(failure, O_CLOEXEC) != 0) return internal_error(std::string("pipe2: ") + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(pointers.data(), standard_error, parent, failure[1]);
  const int fork_error = errno;
  ::close(failure[1]);
  int why = 0;
  ssize_t got = 0;
  while (pid > 0 && (got = ::read(failure[0], &why, sizeof(why))) < 0 && errno == EINTR) {
  }
  ::close(failure[0]);
  if (pid < 0) return make_error(ErrorCode::kResourceExhausted, std::string("fork: ") + std::strerror(fork_error));
  if (got != sizeof(why)) return pid;
  ::waitpid(pid, nullptr, 0);
  return not_found("cannot start " + command[0] + ": " + std::strerror(why));
}

int wait_for_program(pid_t pid) {
  sigset_t watched, before;
  ::sigemptyset(&watched);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) ::sigaddset(&watched, number);
  ::pthread_sigmask(SIG_BLOCK, &watched, &before);
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    siginfo_t info{};
    const timespec longest{1, 0};
    const int number = ::sigtimedwait(&watched, &info, &longest);
    // What the kernel sends comes from the terminal, and to all of its programs.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) ::kill(pid, number);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace troupe::cli
