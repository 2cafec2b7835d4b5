#include "cli/exit_codes.h"

#include <cstdio>

#include "base/error_json.h"
#include "base/printable_text.h"

namespace troupe::cli {

int report(const Error& error, bool as_json) {
  const int exit_code = exit_code_of(error);
  std::fprintf(stderr, "troupe: %s\n", printable(error.to_string(), /*keep_lines=*/true).c_str());
  if (as_json) std::printf("%s\n", error_json(error, exit_code).c_str());
  return exit_code;
}

}  // namespace troupe::cli
