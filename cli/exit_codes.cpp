#include "cli/exit_codes.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace troupe::cli {
using nlohmann::json;

std::string error_json(const Error& error, int exit_code) {
  const json answer = {{"error", {{"code", error_code_name(error.code)}, {"message", error.to_string()}, {"exit_code", exit_code}}}};
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

int report(const Error& error, bool as_json) {
  const int exit_code = exit_code_of(error);
  std::fprintf(stderr, "troupe: %s\n", error.to_string().c_str());
  if (as_json) std::printf("%s\n", error_json(error, exit_code).c_str());
  return exit_code;
}

}  // namespace troupe::cli
