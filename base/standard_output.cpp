#include "base/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace troupe {

int exit_code_after_output(const char* program, int exit_code) {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (flushed && std::ferror(stdout) == 0 && std::cout.good()) return exit_code;
  std::fprintf(stderr, "%s: standard output cannot be written%s%s\n", program, reason != 0 ? ": " : "",
               reason != 0 ? std::strerror(reason) : "");
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace troupe
