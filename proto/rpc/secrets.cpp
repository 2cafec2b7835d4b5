#include "proto/rpc/secrets.h"

#include <fstream>
#include <sstream>

namespace troupe {

Secrets secrets_in(const std::string& folder) {
  return {folder + "/driver.crt", folder + "/driver.key", folder + "/token"};
}

Result<std::string> read_secret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  std::string value = text.str();
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
  if (value.empty()) return invalid_argument(path + " is empty");
  return value;
}

}  // namespace troupe
