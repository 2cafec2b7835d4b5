#include "base/config/key_places.h"

#include <sstream>

#include "base/config/key_table.h"
#include "base/config/yaml_tree.h"

namespace troupe {
namespace {

constexpr std::string_view kKeyStart = "key '";

void collect(const YamlNode& node, const std::string& path, std::map<std::string, std::string>& out) {
  for (const YamlEntry& e : node.entries) {
    const std::string name = path.empty() ? e.key : path + "." + e.key;
    out[name] = place_of_value(e).to_string();
    collect(e.value, name, out);
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string name = path + "[" + std::to_string(i) + "]";
    out[name] = node.items[i].place.to_string();
    collect(node.items[i], name, out);
  }
}

/// The key that a line of a message is about; "" when it begins otherwise, or with a key of another kind of file.
std::string key_of_line(const std::string& line) {
  if (!line.starts_with(kKeyStart)) return "";
  const size_t end = line.find('\'', kKeyStart.size());
  if (end == std::string::npos) return "";
  const std::string key = line.substr(kKeyStart.size(), end - kKeyStart.size());
  return job_spec_keys().has_section(key.substr(0, key.find_first_of(".["))) ? key : "";
}

}  // namespace

KeyPlaces::KeyPlaces(const YamlNode& tree) {
  places_[""] = SourcePlace{tree.place.origin, 1}.to_string();
  collect(tree, "", places_);
}

std::string KeyPlaces::of(const std::string& key) const {
  for (std::string at = key;;) {
    if (const auto found = places_.find(at); found != places_.end()) return found->second;
    if (at.empty()) return "";
    const size_t cut = at.find_last_of(".[");
    at.resize(cut == std::string::npos ? 0 : cut);
  }
}

Error KeyPlaces::located(Error error) const {
  if (places_.empty()) return error;
  std::string text;
  std::istringstream lines(error.message);
  for (std::string line; std::getline(lines, line);) {
    const std::string key = key_of_line(line);
    text += (text.empty() ? "" : "\n") + (key.empty() ? "" : of(key) + ": ") + line;
  }
  error.message = text;
  return error;
}

void KeyPlaces::forget_items(const std::string& list) {
  std::erase_if(places_, [&](const auto& entry) { return entry.first.starts_with(list + "["); });
}

}  // namespace troupe
