#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/config/diagnostics.h"
#include "base/result.h"

/// YAML as a plain tree that remembers lines and quotes. yaml-cpp is seen only by yaml_tree.cpp.
namespace troupe {

/// Names to values: what `${VAR}` is taken from.
using Environment = std::map<std::string, std::string>;
/// The environment of this process; the one place of the tree that reads it.
Environment process_environment();

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
  /// How the value is named in messages: '448x448', "in quotes", a mapping, a list, nothing.
  std::string describe() const;
};

struct YamlEntry {
  std::string key;
  SourcePlace place;
  YamlNode value;
};

/// Parses one document. Syntax errors, doubled keys and keys that are no plain words go to `diagnostics`; `origin` is
/// named in them. An empty text is an empty map. Aliases are copied; a document whose copies exceed a million nodes is
/// refused.
YamlNode parse_yaml(const std::string& text, const std::string& origin, Diagnostics& diagnostics);

/// Replaces `${VAR}` in all scalars ("$${" stands for "${"). A quoted scalar that is one variable
/// and nothing else counts as unquoted: flow mappings cannot hold the braces otherwise. An undefined variable goes to
/// `diagnostics`.
void expand_variables(YamlNode& node, const Environment& environment, Diagnostics& diagnostics);

/// Applies "a.b=value" (the text behind --set) to the tree: maps are made on the way, list items are named by their
/// position, the value is YAML, `null` removes the key. The value's place is the option itself.
void apply_override(YamlNode& root, const std::string& option, Diagnostics& diagnostics);

}  // namespace troupe
