#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace troupe {

struct YamlNode;

/// Where the keys of a job spec were written: what turns "key 'a.b': ..." into "FILE:LINE: key 'a.b': ..." when a
/// complaint arises after the file's tree is gone (placement, index, hosts). Immutable after its making; thread-safe.
class KeyPlaces {
 public:
  /// Of a spec that no file holds: nothing is placed.
  KeyPlaces() = default;
  /// `tree`: the whole file, overrides applied.
  explicit KeyPlaces(const YamlNode& tree);
  /// Of what `places()` gave.
  explicit KeyPlaces(std::map<std::string, std::string> places) : places_(std::move(places)) {}

  /// "FILE:LINE" (or the option) of the key, else of the nearest key above it, else of the file's beginning; "" when
  /// nothing is placed.
  std::string of(const std::string& key) const;
  /// The error with the place in front of each line of its message that begins with a key of the spec.
  Error located(Error error) const;
  /// Forgets where the items of a list stand: the list as read has others.
  void forget_items(const std::string& list);
  /// Dotted key to place; "" is the file itself.
  const std::map<std::string, std::string>& places() const { return places_; }

 private:
  std::map<std::string, std::string> places_;
};

}  // namespace troupe
