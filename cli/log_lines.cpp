#include "cli/log_lines.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/log/log_tag.h"

namespace troupe::cli {

std::string log_text(const std::string& text, const std::string& file, bool as_json) {
  if (!as_json) return text;
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::ordered_json object;
    if (!file.empty()) object["file"] = file;
    if (const auto tag = tag_of_line(line)) {
      object["group"] = tag->group;
      object["rank"] = tag->rank;
    }
    object["line"] = line;
    out += object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }
  return out;
}

}  // namespace troupe::cli
