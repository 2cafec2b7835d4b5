#pragma once

#include <string>
#include <vector>

#include "base/config/diagnostics.h"
#include "base/config/yaml_tree.h"

namespace troupe {

/// A key that a file may have. In `path`, "*" stands for any name and "[]" for the items of a list.
struct KeyRule {
  std::string path;
  bool built = true;          // false: reserved; refused as "not built yet"
  std::string accepted = "";  // for reserved keys: the value that switches the feature off and is therefore accepted
};

/// The keys of one kind of file, and the judgement of unknown ones. Immutable.
class KeyTable {
 public:
  explicit KeyTable(std::vector<KeyRule> rules);
  /// Reports every unknown key (with the nearest known one, or the section where a key of that name belongs) and every
  /// reserved key that asks for something that is not built.
  void check(const YamlNode& root, Diagnostics& diagnostics) const;

  /// Whether the file may have this key at its top.
  bool has_section(const std::string& key) const { return rule(key) || is_prefix(key); }

 private:
  void check_node(const YamlNode& node, const std::string& pattern, const std::string& shown,
                  Diagnostics& diagnostics) const;
  void check_entry(const YamlEntry& entry, const std::string& pattern, const std::string& shown,
                   Diagnostics& diagnostics) const;
  void report_unknown(const YamlEntry& entry, const std::string& pattern, const std::string& shown,
                      Diagnostics& diagnostics) const;
  const KeyRule* rule(const std::string& pattern) const;
  bool is_prefix(const std::string& pattern) const;
  std::vector<std::string> children(const std::string& pattern) const;
  std::vector<std::string> sections_with(const std::string& key) const;

  std::vector<KeyRule> rules_;
};

/// The keys of a job spec, in the order of the reference page.
const KeyTable& job_spec_keys();
/// The keys of a cluster manifest.
const KeyTable& manifest_keys();

}  // namespace troupe
