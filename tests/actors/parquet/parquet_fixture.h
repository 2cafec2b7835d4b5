#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace troupe::fixture {

/// A file that tests/actors/parquet/make_fixture.py wrote.
inline std::string parquet(const std::string& name) {
  return std::string(TROUPE_SOURCE_DIR) + "/tests/actors/parquet/fixture/" + name;
}

/// While it lives the process may map only so many bytes more than it has.
class LessMemory {
 public:
  explicit LessMemory(int64_t bytes) {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit less{static_cast<rlim_t>(pages * 4096 + bytes), before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &less);
  }
  ~LessMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  LessMemory(const LessMemory&) = delete;
  LessMemory& operator=(const LessMemory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace troupe::fixture
