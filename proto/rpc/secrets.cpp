#include "proto/rpc/secrets.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe {

Secrets secrets_in(const std::string& folder) {
  return {folder + "/driver.crt", folder + "/driver.key", folder + "/token"};
}

Result<std::string> read_secret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  if (!file && !std::filesystem::exists(path, error))
    return unavailable(path +
                       " is not there: the driver makes it when it first starts (`troupe driver --cluster FILE`), "
                       "other nodes take a copy");
  if (!file) return invalid_argument("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  std::string value = text.str();
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
  if (value.empty()) return invalid_argument(path + " is empty");
  return value;
}

}  // namespace troupe
