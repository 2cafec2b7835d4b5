#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

/// The page in shared memory in which an actor host says what it is doing, and which its worker reads when the host has
/// died or fallen silent. It is an anonymous memory file: it has no name in any folder and vanishes with its last
/// holder.
namespace troupe {

/// What the page said at one moment. `valid` is false when nothing was published yet or the host died while writing.
struct Progress {
  bool valid = false;
  int64_t step = 0;
  int group = -1;
  int rank = -1;
  std::string instruction;
};

/// The mapped page. Thread-safe: one writer at a time, any number of readers in other processes (a sequence lock).
class ProgressPage {
 public:
  /// Worker side: a fresh page; `fd()` is handed to the child.
  static Result<std::unique_ptr<ProgressPage>> create();
  /// Host side: maps the page that the worker left open as `fd`.
  static Result<std::unique_ptr<ProgressPage>> open(int fd);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  int fd() const { return fd_; }
  /// A few stores, no system call; the instruction is cut at 63 bytes.
  void publish(int64_t step, const char* instruction, int group, int rank);
  Progress read() const;

 private:
  struct Content;
  ProgressPage(int fd, Content* content) : fd_(fd), content_(content) {}
  static Result<std::unique_ptr<ProgressPage>> map(int fd);

  int fd_;
  Content* content_;
};

}  // namespace troupe
