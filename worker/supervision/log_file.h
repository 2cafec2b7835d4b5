#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The files that hosts and tasks write into.
namespace troupe::worker {

/// Keeps a host's log within `cap_bytes`: when it is longer, its last half is kept as PATH.old and the file starts
/// again. The host writes with O_APPEND and notices nothing. Cost: one stat when there is nothing to do.
void cap_log(const std::string& path, int64_t cap_bytes);

/// Reads the complete lines that a process has appended since the last call.
class LineTail {
 public:
  explicit LineTail(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> read_new();

 private:
  std::string path_, rest_;
  int64_t offset_ = 0;
};

}  // namespace troupe::worker
