#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/config/diagnostics.h"
#include "base/convert/foreign_config.h"

namespace troupe::convert {

/// A word of a list, with its place.
struct ForeignWord {
  std::string text;
  SourcePlace place;
};

/// The values of a foreign configuration, with types. A key that is absent or empty has none; a wrong value goes to the
/// diagnostics with file, line, key and what would be valid, and has none either. Quotes do not make text of numbers
/// and booleans here: both projects read them by the key's type. Refers to the configuration and the diagnostics.
class ForeignValues {
 public:
  ForeignValues(const ForeignConfig& config, Diagnostics& diagnostics) : config_(&config), diagnostics_(&diagnostics) {}

  bool has(const std::string& key) const { return config_->find(key) != nullptr; }
  std::optional<double> number(const std::string& key, double minimum,
                               double maximum = std::numeric_limits<double>::max()) const;
  std::optional<int64_t> integer(const std::string& key, int64_t minimum,
                                 int64_t maximum = std::numeric_limits<int64_t>::max()) const;
  /// true, false, yes, no, on, off, 1, 0 in any case.
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  /// A list, or one text cut at commas when `commas`.
  std::vector<ForeignWord> words(const std::string& key, bool commas) const;
  /// A mapping of words, written as one or as a text of JSON; none when it is absent.
  std::vector<std::pair<std::string, ForeignWord>> mapping(const std::string& key) const;

  /// "FILE:LINE: key 'KEY': value VALUE is not valid; valid: VALID"
  void bad_value(const std::string& key, const std::string& valid) const;
  /// "FILE:LINE: key 'KEY': MESSAGE"
  void fail(const std::string& key, const std::string& message) const;
  /// "value 'x'", as messages name it.
  std::string shown(const std::string& key) const;
  SourcePlace place_of(const std::string& key) const;
  const ForeignConfig& config() const { return *config_; }
  Diagnostics& diagnostics() const { return *diagnostics_; }

 private:
  const YamlNode* scalar(const std::string& key, const std::string& valid) const;
  bool plain(const std::string& key, const ForeignWord& word) const;

  const ForeignConfig* config_;
  Diagnostics* diagnostics_;
};

}  // namespace troupe::convert
