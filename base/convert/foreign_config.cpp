#include "base/convert/foreign_config.h"

#include <algorithm>

#include "base/convert/key_fates.h"
#include "base/convert/shell_config.h"
#include "base/regular_file.h"

namespace troupe::convert {
namespace {

/// How many of the keys only this tool has.
size_t own_keys_in(const std::vector<YamlEntry>& entries, ForeignTool tool, ForeignTool other) {
  return static_cast<size_t>(std::count_if(entries.begin(), entries.end(), [&](const YamlEntry& e) {
    return find_key(tool, e.key) && !find_key(other, e.key);
  }));
}

/// Keys of a job spec, which somebody may name here by mistake.
bool looks_like_job_spec(const YamlNode& root) {
  const YamlNode* model = root.find("model");
  return (model && model->is_map()) || (root.find("groups") && root.find("training"));
}

Result<ForeignTool> tool_of(const YamlNode& root, const std::string& file) {
  if (looks_like_job_spec(root))
    return invalid_argument(file + ": is a job spec already; valid: a configuration of LLaMA-Factory or ms-swift");
  const size_t factory = own_keys_in(root.entries, ForeignTool::kLlamaFactory, ForeignTool::kMsSwift);
  const size_t swift = own_keys_in(root.entries, ForeignTool::kMsSwift, ForeignTool::kLlamaFactory);
  if (factory != swift) return factory > swift ? ForeignTool::kLlamaFactory : ForeignTool::kMsSwift;
  return invalid_argument(file + ": its keys do not say whose it is; valid: --from llama-factory or --from ms-swift");
}

}  // namespace

std::string tool_title(ForeignTool tool) { return tool == ForeignTool::kLlamaFactory ? "LLaMA-Factory" : "ms-swift"; }

std::optional<ForeignTool> tool_of_word(const std::string& word) {
  if (word == "llama-factory") return ForeignTool::kLlamaFactory;
  if (word == "ms-swift") return ForeignTool::kMsSwift;
  return std::nullopt;
}

bool is_empty_value(const YamlNode& value) {
  if (value.kind == YamlKind::kNull) return true;
  return value.kind == YamlKind::kScalar && !value.quoted && (value.text == "None" || value.text == "null");
}

const YamlNode* ForeignConfig::find(const std::string& key) const {
  for (const YamlEntry& e : entries)
    if (e.key == key) return is_empty_value(e.value) ? nullptr : &e.value;
  return nullptr;
}

Result<ForeignConfig> read_foreign_config(const std::string& file, std::optional<ForeignTool> tool) {
  TROUPE_ASSIGN(const std::string text, read_text_file(file));
  if (looks_like_shell(text)) {
    TROUPE_ASSIGN(ForeignConfig config, read_shell_config(text, file));
    if (tool && *tool != config.tool)
      return invalid_argument(file + ": has a command of " + tool_title(config.tool) + ", not of " + tool_title(*tool));
    return config;
  }
  Diagnostics found;
  YamlNode root = parse_yaml(text, file, found);
  if (!root.is_map() || root.entries.empty()) {
    if (found.empty())
      found.add({file, 1}, "holds " + root.describe() +
                               "; valid: keys and values of LLaMA-Factory or ms-swift, or a script with swift sft");
  }
  TROUPE_RETURN_IF_ERROR(found.to_status());
  ForeignConfig config;
  config.file = file;
  if (!tool) {
    TROUPE_ASSIGN(tool, tool_of(root, file));
  }
  config.tool = *tool;
  config.entries = std::move(root.entries);
  return config;
}

}  // namespace troupe::convert
