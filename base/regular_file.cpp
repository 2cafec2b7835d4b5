#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder, expected a file";
  if (S_ISFIFO(mode)) return "is a pipe, expected a file";
  if (S_ISSOCK(mode)) return "is a socket, expected a file";
  return "is a device, expected a file";
}

/// Until `text` is full or the file ends; it may have shrunk since it was measured.
bool read_all(int fd, std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return true;
}

}  // namespace

Result<int> open_regular_file(const std::string& path) {
  if (path.find('\0') != std::string::npos) return invalid_argument("a path cannot hold a zero byte");
  // A plain open of a pipe would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (fd < 0) {
    const int reason = errno;
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return not_found(kind_of(info.st_mode));
    return not_found(std::strerror(reason));
  }
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
  ::close(fd);
  return not_found(kind_of(info.st_mode));
}

Result<std::string> read_text_file(const std::string& path) {
  const Result<int> opened = open_regular_file(path);
  if (!opened.ok()) {
    const bool other_kind = opened.error().message.starts_with("is ");
    return not_found(path + (other_kind ? ": " : ": cannot be read: ") + opened.error().message);
  }
  struct stat info {};
  const bool measured = ::fstat(*opened, &info) == 0;
  if (measured && info.st_size > kMaxTextBytes) {
    ::close(*opened);
    return invalid_argument(path + ": has " + std::to_string(info.st_size) + " bytes; valid: at most " +
                            std::to_string(kMaxTextBytes));
  }
  std::string text(measured ? static_cast<size_t>(info.st_size) : 0, '\0');
  const bool whole = measured && read_all(*opened, text);
  const int reason = errno;
  ::close(*opened);
  if (!whole) return not_found(path + ": cannot be read: " + std::strerror(reason));
  return text;
}

}  // namespace troupe
