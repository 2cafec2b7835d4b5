#include "base/convert/key_fates.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace troupe::convert {
namespace {

const std::vector<ForeignKey>& own_keys(ForeignTool tool) {
  return tool == ForeignTool::kLlamaFactory ? llama_factory_keys() : ms_swift_keys();
}

const ForeignKey* find_in(const std::vector<ForeignKey>& keys, std::string_view name) {
  const auto at = std::find_if(keys.begin(), keys.end(), [&](const ForeignKey& k) { return k.name == name; });
  return at == keys.end() ? nullptr : &*at;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

const ForeignKey* find_key(ForeignTool tool, std::string_view name) {
  const ForeignKey* own = find_in(own_keys(tool), name);
  return own ? own : find_in(trainer_keys(), name);
}

std::vector<std::string> known_names(ForeignTool tool) {
  std::vector<std::string> out;
  for (const auto* keys : {&own_keys(tool), &trainer_keys()})
    for (const ForeignKey& key : *keys) out.emplace_back(key.name);
  return out;
}

bool is_off(const ForeignKey& key, const YamlNode& value) {
  if (is_empty_value(value)) return true;
  if (value.kind == YamlKind::kSequence) return value.items.empty();
  if (value.kind != YamlKind::kScalar || key.off.empty()) return false;
  const std::string given = lower(value.text), off = "|" + std::string(key.off) + "|";
  return off.find("|" + given + "|") != std::string::npos;
}

}  // namespace troupe::convert
