#include "base/convert/foreign_values.h"

#include <algorithm>
#include <cctype>

#include "base/config/scalars.h"

namespace troupe::convert {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::optional<bool> boolean_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* yes : {"true", "yes", "on", "1"})
    if (text == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (text == no) return false;
  return std::nullopt;
}

std::string integer_range(int64_t minimum, int64_t maximum) {
  const std::string from = "an integer from " + std::to_string(minimum);
  return maximum == std::numeric_limits<int64_t>::max() ? from : from + " to " + std::to_string(maximum);
}

std::string number_range(double minimum, double maximum) {
  const std::string from = "a number from " + number_text(minimum);
  return maximum == std::numeric_limits<double>::max() ? from : from + " to " + number_text(maximum);
}

}  // namespace

SourcePlace ForeignValues::place_of(const std::string& key) const {
  for (const YamlEntry& e : config_->entries)
    if (e.key == key) return place_of_value(e);
  return {config_->file, 0};
}

void ForeignValues::fail(const std::string& key, const std::string& message) const {
  diagnostics_->add_key(place_of(key), key, message);
}

std::string ForeignValues::shown(const std::string& key) const {
  const YamlNode* node = config_->find(key);
  return "value " + (node ? node->describe() : std::string("nothing"));
}

void ForeignValues::bad_value(const std::string& key, const std::string& valid) const {
  fail(key, shown(key) + " is not valid; valid: " + valid);
}

bool ForeignValues::plain(const std::string& key, const ForeignWord& word) const {
  if (word.text.find("${") == std::string::npos) return true;
  diagnostics_->add_key(word.place, key, "value '" + word.text + "' holds a variable; valid: what it stands for");
  return false;
}

const YamlNode* ForeignValues::scalar(const std::string& key, const std::string& valid) const {
  const YamlNode* node = config_->find(key);
  if (!node) return nullptr;
  if (node->kind == YamlKind::kScalar) return plain(key, {node->text, node->place}) ? node : nullptr;
  bad_value(key, valid);
  return nullptr;
}

std::optional<double> ForeignValues::number(const std::string& key, double minimum, double maximum) const {
  const std::string valid = number_range(minimum, maximum);
  const YamlNode* node = scalar(key, valid);
  if (!node) return std::nullopt;
  const auto value = parse_number(node->text);
  if (value && *value >= minimum && *value <= maximum) return value;
  bad_value(key, valid);
  return std::nullopt;
}

std::optional<int64_t> ForeignValues::integer(const std::string& key, int64_t minimum, int64_t maximum) const {
  const std::string valid = integer_range(minimum, maximum);
  const YamlNode* node = scalar(key, valid);
  if (!node) return std::nullopt;
  const bool negative = node->text.rfind('-', 0) == 0;
  auto value = parse_integer(negative ? node->text.substr(1) : node->text);
  if (value && negative) value = -*value;
  if (value && *value >= minimum && *value <= maximum) return value;
  bad_value(key, valid);
  return std::nullopt;
}

std::optional<bool> ForeignValues::boolean(const std::string& key) const {
  const YamlNode* node = scalar(key, "true, false");
  if (!node) return std::nullopt;
  const auto value = boolean_of(node->text);
  if (!value) bad_value(key, "true, false");
  return value;
}

std::optional<std::string> ForeignValues::text(const std::string& key) const {
  const YamlNode* node = scalar(key, "one text");
  return node ? std::optional<std::string>(node->text) : std::nullopt;
}

std::vector<ForeignWord> ForeignValues::words(const std::string& key, bool commas) const {
  const YamlNode* node = config_->find(key);
  std::vector<ForeignWord> out;
  if (!node) return out;
  if (node->kind == YamlKind::kScalar) {
    size_t begin = 0;
    for (size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = commas ? node->text.find(',', begin) : std::string::npos;
      out.push_back({trimmed(node->text.substr(begin, end == std::string::npos ? end : end - begin)), node->place});
    }
  }
  for (const YamlNode& item : node->items)
    if (item.kind == YamlKind::kScalar) out.push_back({item.text, item.place});
  const bool whole = node->kind == YamlKind::kScalar || out.size() == node->items.size();
  const bool empty = std::any_of(out.begin(), out.end(), [](const ForeignWord& w) { return w.text.empty(); });
  if (!whole || empty || node->is_map()) {
    bad_value(key, "a list of names or paths, none of them empty");
    return {};
  }
  std::erase_if(out, [&](const ForeignWord& w) { return !plain(key, w); });
  return out;
}

std::vector<std::pair<std::string, ForeignWord>> ForeignValues::mapping(const std::string& key) const {
  const YamlNode* node = config_->find(key);
  if (!node) return {};
  Diagnostics found;
  const YamlNode parsed = node->kind == YamlKind::kScalar ? parse_yaml(node->text, key, found) : *node;
  std::vector<std::pair<std::string, ForeignWord>> out;
  for (const YamlEntry& e : parsed.entries)
    if (e.value.kind == YamlKind::kScalar) out.push_back({e.key, {e.value.text, node->place}});
  if (found.empty() && parsed.is_map() && out.size() == parsed.entries.size()) return out;
  bad_value(key, "a mapping of words, such as {\"a\": \"b\"}");
  return {};
}

}  // namespace troupe::convert
