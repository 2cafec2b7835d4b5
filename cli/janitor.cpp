#include "cli/janitor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace troupe::cli {
namespace {

constexpr char kTitle[] = "troupe-janitor";

/// `ps` and `pkill` shall not take this process for a second run: the words that they look at lie between two addresses
/// of this process, and are overwritten.
void take_title(std::string_view title) {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 48; ++field) fields >> skipped;
  uintptr_t start = 0, end = 0;
  if (!(fields >> start >> end) || start == 0 || end <= start) return;
  char* const words = reinterpret_cast<char*>(start);
  const size_t size = end - start;
  std::memset(words, 0, size);
  std::memcpy(words, title.data(), std::min(title.size(), size - 1));
}

[[noreturn]] void sweep_after_parent(const std::string& path, int pipe) {
  ::setsid();
  ::prctl(PR_SET_NAME, kTitle);
  take_title(kTitle);
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
