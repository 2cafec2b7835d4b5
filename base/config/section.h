#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/config/diagnostics.h"
#include "base/config/yaml_tree.h"

namespace troupe {

/// A mapping being read, with typed access to its keys. A key that is absent leaves its target (the default) alone; a
/// wrong value goes to the diagnostics with its line and leaves the default too. Refers to the tree and the
/// diagnostics; both outlive it.
class Section {
 public:
  /// `node`: null when the section is absent. `path`: dotted name, "" for the file itself.
  Section(const YamlNode* node, std::string path, SourcePlace place, Diagnostics& diagnostics);

  bool present() const { return node_ != nullptr; }
  const std::string& path() const { return path_; }
  const SourcePlace& place() const { return place_; }
  /// The value, or null when absent; an empty value is reported.
  const YamlNode* find(const std::string& key) const;
  bool has(const std::string& key) const { return node_ && node_->find(key); }
  /// A mapping below; reported when it is something else.
  Section section(const std::string& key) const;
  /// Every entry as a section of its own, in order.
  std::vector<std::pair<std::string, Section>> sections() const;

  void integer(const std::string& key, int64_t& out, int64_t minimum,
               int64_t maximum = std::numeric_limits<int64_t>::max()) const;
  void integer(const std::string& key, int& out, int64_t minimum,
               int64_t maximum = std::numeric_limits<int>::max()) const;
  void number(const std::string& key, double& out, double minimum,
              double maximum = std::numeric_limits<double>::max()) const;
  void boolean(const std::string& key, bool& out) const;
  void string(const std::string& key, std::string& out) const;
  /// One of the listed words.
  template <typename T>
  void choice(const std::string& key, T& out, std::initializer_list<std::pair<const char*, T>> valid) const {
    std::vector<std::string> words;
    for (const auto& v : valid) words.push_back(v.first);
    const std::string word = word_of(key, words);
    for (const auto& [name, value] : valid)
      if (word == name) out = value;
  }

  /// Where a key stands, or where its section stands when it is absent.
  SourcePlace place_of(const std::string& key) const;
  /// "PLACE: key 'SECTION.KEY': MESSAGE"
  void fail(const std::string& key, const std::string& message) const;
  void bad_value(const std::string& key, const std::string& value, const std::string& valid) const;
  std::string full_name(const std::string& key) const {
    return path_.empty() ? key : key.empty() ? path_ : path_ + "." + key;
  }
  Diagnostics& diagnostics() const { return *diagnostics_; }

 private:
  const YamlNode* scalar(const std::string& key, const std::string& valid) const;
  const YamlNode* unquoted(const std::string& key, const std::string& valid) const;
  std::string word_of(const std::string& key, const std::vector<std::string>& valid) const;

  const YamlNode* node_;
  std::string path_;
  SourcePlace place_;
  Diagnostics* diagnostics_;
};

}  // namespace troupe
