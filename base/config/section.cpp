#include "base/config/section.h"

#include <algorithm>

#include "base/config/scalars.h"

namespace troupe {
namespace {

std::string integer_range(int64_t minimum, int64_t maximum) {
  return "an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum);
}

std::string number_range(double minimum, double maximum) {
  if (maximum == std::numeric_limits<double>::max()) return "a number from " + number_text(minimum);
  return "a number from " + number_text(minimum) + " to " + number_text(maximum);
}

}  // namespace

Section::Section(const YamlNode* node, std::string path, SourcePlace place, Diagnostics& diagnostics)
    : node_(node), path_(std::move(path)), place_(std::move(place)), diagnostics_(&diagnostics) {}

const YamlNode* Section::find(const std::string& key) const {
  const YamlNode* n = node_ ? node_->find(key) : nullptr;
  if (!n || n->kind != YamlKind::kNull) return n;
  fail(key, "has no value");
  return nullptr;
}

Section Section::section(const std::string& key) const {
  const YamlNode* n = find(key);
  if (n && !n->is_map()) {
    bad_value(key, n->describe(), "a mapping of keys and values");
    n = nullptr;
  }
  return Section(n, full_name(key), place_of(key), *diagnostics_);
}

std::vector<std::pair<std::string, Section>> Section::sections() const {
  std::vector<std::pair<std::string, Section>> out;
  if (node_)
    for (const YamlEntry& e : node_->entries) {
      // "vision: {}" and "vision:" both mean all defaults.
      const bool empty = e.value.kind == YamlKind::kNull;
      if (!empty && !e.value.is_map()) bad_value(e.key, e.value.describe(), "a mapping of keys and values");
      out.emplace_back(e.key, Section(e.value.is_map() ? &e.value : nullptr, full_name(e.key), e.place, *diagnostics_));
    }
  return out;
}

SourcePlace Section::place_of(const std::string& key) const {
  if (node_)
    for (const YamlEntry& e : node_->entries)
      if (e.key == key) return place_of_value(e);
  return place_;
}

void Section::fail(const std::string& key, const std::string& message) const {
  diagnostics_->add_key(place_of(key), full_name(key), message);
}

void Section::bad_value(const std::string& key, const std::string& value, const std::string& valid) const {
  diagnostics_->bad_value(place_of(key), full_name(key), value, valid);
}

const YamlNode* Section::scalar(const std::string& key, const std::string& valid) const {
  const YamlNode* n = find(key);
  if (!n || n->kind == YamlKind::kScalar) return n;
  bad_value(key, n->describe(), valid);
  return nullptr;
}

const YamlNode* Section::unquoted(const std::string& key, const std::string& valid) const {
  const YamlNode* n = scalar(key, valid);
  if (!n || !n->quoted) return n;
  fail(key, "value " + n->describe() + " is in quotes, which makes it text; valid: " + valid + ", without quotes");
  return nullptr;
}

void Section::integer(const std::string& key, int64_t& out, int64_t minimum, int64_t maximum) const {
  const std::string valid = integer_range(minimum, maximum);
  const YamlNode* n = unquoted(key, valid);
  if (!n) return;
  const auto value = parse_integer(n->text);
  if (!value || *value < minimum || *value > maximum)
    bad_value(key, n->describe(), valid);
  else
    out = *value;
}

void Section::integer(const std::string& key, int& out, int64_t minimum, int64_t maximum) const {
  int64_t wide = out;
  integer(key, wide, minimum, std::min<int64_t>(maximum, std::numeric_limits<int>::max()));
  out = static_cast<int>(wide);
}

void Section::number(const std::string& key, double& out, double minimum, double maximum) const {
  const std::string valid = number_range(minimum, maximum);
  const YamlNode* n = unquoted(key, valid);
  if (!n) return;
  const auto value = parse_number(n->text);
  if (!value || *value < minimum || *value > maximum)
    bad_value(key, n->describe(), valid);
  else
    out = *value;
}

void Section::boolean(const std::string& key, bool& out) const {
  const YamlNode* n = unquoted(key, "true, false");
  if (!n) return;
  if (n->text == "true" || n->text == "false")
    out = n->text == "true";
  else
    bad_value(key, n->describe(), "true, false");
}

void Section::string(const std::string& key, std::string& out) const {
  if (const YamlNode* n = scalar(key, "text")) out = n->text;
}

std::string Section::word_of(const std::string& key, const std::vector<std::string>& valid) const {
  const YamlNode* n = scalar(key, join_words(valid));
  if (!n) return "";
  if (std::find(valid.begin(), valid.end(), n->text) == valid.end()) {
    const std::string near = nearest_word(n->text, valid);
    bad_value(key, n->describe(), join_words(valid) + (near.empty() ? "" : " (did you mean " + near + "?)"));
    return "";
  }
  return n->text;
}

}  // namespace troupe
