#include "cli/forked_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace troupe::cli {
namespace {

using Clock = std::chrono::steady_clock;

Error failed(const char* call) { return internal_error(std::string(call) + ": " + std::strerror(errno)); }

}  // namespace

Result<std::string> read_all(int socket, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{socket, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (count < 0 && errno != EINTR) return failed("poll");
    if (count == 0) return deadline_exceeded("a process of the bench said nothing for too long");
    if (count < 0) continue;
    char block[4096];
    const ssize_t got = ::read(socket, block, sizeof(block));
    if (got < 0 && errno != EINTR) return failed("read");
    if (got == 0) return text;
    if (got > 0) text.append(block, static_cast<size_t>(got));
  }
}

Status write_all(int socket, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::send(socket, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (wrote < 0 && errno != EINTR) return failed("send");
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  ::shutdown(socket, SHUT_WR);
  return {};
}

Result<std::unique_ptr<ForkedProcess>> ForkedProcess::start(const std::function<int(int socket)>& body) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed("socketpair");
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::close(ends[0]);
    ::_exit(body(ends[1]));
  }
  const Status forked = pid < 0 ? Status(failed("fork")) : Status();
  ::close(ends[1]);
  if (!forked.ok()) {
    ::close(ends[0]);
    return forked.error();
  }
  return std::unique_ptr<ForkedProcess>(new ForkedProcess(pid, ends[0]));
}

ForkedProcess::~ForkedProcess() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(socket_);
}

Status ForkedProcess::tell(const std::string& text) { return write_all(socket_, text); }
Result<std::string> ForkedProcess::hear(std::chrono::milliseconds timeout) { return read_all(socket_, timeout); }

}  // namespace troupe::cli
