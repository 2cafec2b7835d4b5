#pragma once

#include <string>
#include <vector>

#include "base/config/diagnostics.h"

namespace troupe::convert {

/// One key of the spec that comes out.
struct DraftKey {
  std::string path;                // "training.optimizer.lr"
  std::string value;               // as YAML has it; of a list its items, a line each
  std::vector<std::string> items;  // of a list
  std::vector<std::string> from;   // the foreign keys that it comes from; none: a default
  std::string why;                 // beside or instead of them
};

/// Something a person should know of how a key came over.
struct Remark {
  SourcePlace place;
  std::string text;
};

/// A job spec in the making: keys with their origins, in the order of the reference page.
class SpecDraft {
 public:
  /// `tool`: how the foreign project is named in comments.
  explicit SpecDraft(std::string tool) : tool_(std::move(tool)) {}

  void set(const std::string& path, const std::string& value, std::vector<std::string> from, std::string why = "");
  void set_list(const std::string& path, std::vector<std::string> items, std::vector<std::string> from);
  /// The value that the foreign project takes when its configuration says nothing.
  void set_default(const std::string& path, const std::string& value);
  /// `set`, or `set_default` when `given` is false.
  void set_or_default(bool given, const std::string& path, const std::string& value, const std::string& key);
  void remark(const SourcePlace& place, const std::string& text) { remarks_.push_back({place, text}); }
  /// A foreign key that needs nothing in the spec: it says what holds anyway.
  void take_note_of(const std::string& key, const std::string& why) { understood_.push_back({key, why}); }

  const std::vector<DraftKey>& keys() const { return keys_; }
  const std::vector<Remark>& remarks() const { return remarks_; }
  const std::vector<std::pair<std::string, std::string>>& understood() const { return understood_; }
  const DraftKey* find(const std::string& path) const;

  /// The spec as text, a comment behind each key that says where it comes from.
  std::string to_yaml() const;

 private:
  std::string origin_of(const DraftKey& key) const;

  std::string tool_;
  std::vector<DraftKey> keys_;
  std::vector<Remark> remarks_;
  std::vector<std::pair<std::string, std::string>> understood_;
};

}  // namespace troupe::convert
