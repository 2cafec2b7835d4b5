#include "driver/run/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe::driver {

LineFile::LineFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) {
  open_error_ = file_ < 0 ? errno : 0;
  if (file_ >= 0) cut_torn_line();
}

LineFile::~LineFile() {
  if (file_ >= 0) ::close(file_);
}

void LineFile::cut_torn_line() {
  const off_t size = ::lseek(file_, 0, SEEK_END);
  off_t end = size;
  char block[4096];
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof(block)));
    const ssize_t n = ::pread(file_, block, static_cast<size_t>(end - begin), begin);
    if (n != end - begin) return;  // unreadable: left as it is
    const void* newline = ::memrchr(block, '\n', static_cast<size_t>(n));
    if (newline) end = begin + (static_cast<const char*>(newline) - block) + 1;
    if (newline) break;
    end = begin;
  }
  if (end < size) cut(end);
}

int LineFile::cut(off_t end) {
  const int reason = ::ftruncate(file_, end) == 0 ? 0 : errno;
  torn_at_ = reason == 0 ? -1 : end;
  return reason;
}

Status LineFile::append(const std::string& lines) {
  waiting_ += lines;
  int reason = open_error_;
  if (reason == 0 && torn_at_ >= 0) reason = cut(torn_at_);
  while (reason == 0 && !waiting_.empty()) {
    const off_t before = ::lseek(file_, 0, SEEK_END);
    const ssize_t n = ::write(file_, waiting_.data(), waiting_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) reason = errno;
    if (n <= 0) break;
    const auto written = static_cast<size_t>(n);
    if (written == waiting_.size()) {
      waiting_.clear();
      break;
    }
    // A disk that is full takes a part: its complete lines stay.
    const size_t newline = waiting_.rfind('\n', written - 1);
    const size_t whole = newline == std::string::npos ? 0 : newline + 1;
    if (whole < written) reason = cut(before + static_cast<off_t>(whole));
    waiting_.erase(0, whole);
    if (whole == 0 && reason == 0) reason = ENOSPC;
  }
  if (waiting_.empty()) return {};
  return make_error(ErrorCode::kResourceExhausted,
                    "cannot write " + path_ + ": " + std::strerror(reason == 0 ? EIO : reason));
}

long LineFile::waiting() const { return std::count(waiting_.begin(), waiting_.end(), '\n'); }

}  // namespace troupe::driver
