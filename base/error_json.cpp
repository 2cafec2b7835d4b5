#include "base/error_json.h"

#include <nlohmann/json.hpp>

namespace troupe {

std::string error_json(const Error& error, int exit_code) {
  const nlohmann::json answer = {
      {"error", {{"code", error_code_name(error.code)}, {"message", error.to_string()}, {"exit_code", exit_code}}}};
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace troupe
