#include "base/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

namespace troupe {
namespace {

/// Where the byte `at` of a text that begins at `begin` stands.
std::string place_of(std::string_view text, size_t at, TextPlace begin) {
  at = std::min(at, text.size());
  const auto before = text.substr(0, at);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t last = before.rfind('\n');
  const auto column = lines > 0 ? at - last : static_cast<size_t>(begin.column) + at;
  return "line " + std::to_string(begin.line + lines) + ", column " + std::to_string(column);
}

/// Watches a parser's events for what makes a value unusable though its text is JSON.
template <typename Json>
class Watch {
 public:
  bool operator()(int depth, typename Json::parse_event_t event, Json& parsed) {
    using Event = typename Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) too_deep_ = too_deep_ || depth >= kMaxJsonDepth;
    if (too_deep_) return false;  // nothing more is kept
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::key && !keys_.empty()) keys_.back().push_back(parsed.template get_ref<const std::string&>());
    if (event == Event::object_end && !keys_.empty()) {
      if (parsed.size() != keys_.back().size() && doubled_.empty())
        doubled_ = "has the key '" + repeated(keys_.back()) + "' twice";
      keys_.pop_back();
    }
    return true;
  }
  /// Why the value cannot be used; empty when it can.
  std::string complaint() const {
    return too_deep_ ? "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels" : doubled_;
  }

 private:
  static std::string repeated(const std::vector<std::string>& keys) {
    std::set<std::string> seen;
    for (const auto& key : keys)
      if (!seen.insert(key).second) return key;
    return "";
  }

  bool too_deep_ = false;
  std::string doubled_;
  std::vector<std::vector<std::string>> keys_;  // of the objects that are open
};

template <typename Json>
Result<Json> parse(std::string_view text, TextPlace begin) {
  Watch<Json> watch;
  try {
    Json value = Json::parse(text.begin(), text.end(),
                             [&](int depth, auto event, Json& parsed) { return watch(depth, event, parsed); });
    if (std::string complaint = watch.complaint(); !complaint.empty()) return invalid_argument(std::move(complaint));
    return value;
  } catch (const nlohmann::json::parse_error& e) {
    if (std::string complaint = watch.complaint(); !complaint.empty()) return invalid_argument(std::move(complaint));
    return invalid_argument("is not valid JSON at " + place_of(text, e.byte > 0 ? e.byte - 1 : 0, begin) + ": " +
                            json_complaint(e));
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument("is not valid JSON: " + json_complaint(e));
  }
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, TextPlace begin) { return parse<nlohmann::json>(text, begin); }

Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, TextPlace begin) {
  return parse<nlohmann::ordered_json>(text, begin);
}

std::string figure_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  char text[400];  // the largest double has 309 digits
  const double figure = value.get<double>();
  const bool small = figure != 0 && std::abs(figure) < 0.001;
  std::snprintf(text, sizeof text, small ? "%.4g" : "%.4f", figure);
  return text;
}

std::string json_complaint(const nlohmann::json::exception& e) {
  std::string what = e.what();
  if (const size_t bracket = what.find("] "); bracket != std::string::npos) what = what.substr(bracket + 2);
  if (const size_t colon = what.find(": "); what.starts_with("parse error at") && colon != std::string::npos)
    what = what.substr(colon + 2);
  return what;
}

}  // namespace troupe
