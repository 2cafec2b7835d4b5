#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config/yaml_tree.h"
#include "base/result.h"

/// Training configurations of other projects, read as keys and values with their lines.
namespace troupe::convert {

enum class ForeignTool { kLlamaFactory, kMsSwift };

/// As it is written to a person: "LLaMA-Factory", "ms-swift".
std::string tool_title(ForeignTool tool);
/// As it is written on the command line: "llama-factory", "ms-swift"; nothing for another word.
std::optional<ForeignTool> tool_of_word(const std::string& word);

/// What one configuration asks for, in its order. Keys are as the tool's documentation spells them; variables of the
/// environment that stand before a command are keys too, in capitals.
struct ForeignConfig {
  ForeignTool tool = ForeignTool::kLlamaFactory;
  std::string file;  // as it was named
  std::vector<YamlEntry> entries;

  /// The value of a key; null when it is absent or empty (null, ~, None).
  const YamlNode* find(const std::string& key) const;
};

/// Whether a value asks for nothing: null, ~, None or nothing at all.
bool is_empty_value(const YamlNode& value);

/// Reads YAML, JSON (both as `--config FILE` and `llamafactory-cli train FILE` take them) or a shell script with one
/// training command, told by content. `tool`: whose it is; without it that is told by the command or by the keys, and
/// refused when they say nothing. InvalidArgument and NotFound name file, line and what would be valid.
Result<ForeignConfig> read_foreign_config(const std::string& file, std::optional<ForeignTool> tool);

}  // namespace troupe::convert
