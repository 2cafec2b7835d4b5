#pragma once

#include <string>
#include <vector>

#include "base/config/diagnostics.h"
#include "base/result.h"

/// YAML as a plain tree that remembers lines and quotes. yaml-cpp is seen only by yaml_tree.cpp.
namespace troupe {

enum class YamlKind { kNull, kScalar, kMap, kSequence };

struct YamlEntry;

struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  std::string text;     // of a scalar, variables expanded
  bool quoted = false;  // "448" is text, 448 is a number
  SourcePlace place;
  std::vector<YamlEntry> entries;  // of a map, in order
  std::vector<YamlNode> items;     // of a sequence

  bool is_map() const { return kind == YamlKind::kMap; }
  const YamlNode* find(const std::string& key) const;
  YamlNode* find(const std::string& key);
  /// How the value is named in messages: '448x448', "in quotes", [1, 2] (a list), {a: 1} (a mapping), nothing; long
  /// ones are cut.
  std::string describe() const;
};

struct YamlEntry {
  std::string key;
  SourcePlace place;
  YamlNode value;
};

/// Where a key's value stands: its own line, or the option that set it.
const SourcePlace& place_of_value(const YamlEntry& entry);

/// Parses one document. Syntax errors, doubled keys and keys that are no plain words go to `diagnostics`; `origin` is
/// named in them. An empty text is an empty map. Aliases are copied; a document whose copies exceed a million nodes is
/// refused.
YamlNode parse_yaml(const std::string& text, const std::string& origin, Diagnostics& diagnostics);

/// Applies "a.b=value" (the text behind --set) to the tree: maps are made on the way, list items are named by their
/// position, the value is YAML, `null` removes the key. The value's place is the option itself.
void apply_override(YamlNode& root, const std::string& option, Diagnostics& diagnostics);

}  // namespace troupe
