#include "cli/evaluation_text.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace troupe::cli {

std::string evaluation_text(const std::string& result_json, bool json) {
  const auto whole = nlohmann::json::parse(result_json, nullptr, false);
  const auto results = whole.is_object() ? whole.value("results", nlohmann::json::object()) : nlohmann::json::object();
  if (json) return results.dump(2) + "\n";
  std::string text;
  for (const auto& [key, value] : results.items())
    if (value.is_primitive())
      text += key + std::string(key.size() < 24 ? 24 - key.size() : 1, ' ') + figure_text(value) + "\n";
  if (!results.contains("show") || !results["show"].is_array()) return text;
  for (const auto& sample : results["show"]) {
    text += "\n";
    for (const char* key : {"id", "question", "expected", "predicted"}) {
      if (!sample.contains(key)) continue;
      text += std::string(key) + std::string(12 - std::string(key).size(), ' ') + figure_text(sample[key]) + "\n";
    }
  }
  return text;
}

}  // namespace troupe::cli
