#include "cli/janitor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

namespace troupe::cli {
namespace {

[[noreturn]] void sweep_after_parent(const std::string& path, int pipe) {
  ::setsid();
  ::prctl(PR_SET_NAME, "troupe-janitor");
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) ::signal(number, SIG_IGN);
  // Another's end of a pipe must not stay open because of us.
  if (pipe != 0) {
    ::dup2(pipe, 0);
    ::close(pipe);
  }
  ::syscall(SYS_close_range, 1, ~0U, 0);
  char byte;
  while (::read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  // A dying host may still be writing there: then the folder is not empty at the first try.
  for (int attempt = 0; attempt < 50; ++attempt) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (!error) break;
    ::usleep(100000);
  }
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<PrivateFolder>> PrivateFolder::create() {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error).string() + "/troupe-XXXXXX";
  // Socket addresses are at most 107 bytes.
  if (path.size() > 80) path = "/tmp/troupe-XXXXXX";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return internal_error(std::string("pipe2: ") + std::strerror(errno));
  if (!::mkdtemp(path.data())) {
    const std::string why = std::strerror(errno);
    ::close(ends[0]);
    ::close(ends[1]);
    return make_error(ErrorCode::kFailedPrecondition, "cannot make a folder for sockets, " + path + ": " + why);
  }
  const int pid = ::fork();
  if (pid == 0) {
    ::close(ends[1]);
    sweep_after_parent(path, ends[0]);
  }
  ::close(ends[0]);
  if (pid < 0) {
    ::close(ends[1]);
    std::filesystem::remove_all(path, error);
    return internal_error(std::string("fork: ") + std::strerror(errno));
  }
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(path), ends[1], pid));
}

PrivateFolder::~PrivateFolder() {
  ::close(pipe_);
  ::waitpid(janitor_, nullptr, 0);
}

}  // namespace troupe::cli
