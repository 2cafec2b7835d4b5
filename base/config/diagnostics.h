#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Where a value stands: a line of a file, or an option of the command line. Orders and prints.
struct SourcePlace {
  std::string origin;  // file name, or the option's text such as "--set training.steps=x"
  int line = 0;        // from 1; 0: no line (an option)
  std::string to_string() const { return line > 0 ? origin + ":" + std::to_string(line) : origin; }
};

/// Collects everything that is wrong with one file, so that a person sees all of it at once. Owner thread only.
class Diagnostics {
 public:
  void add(const SourcePlace& place, const std::string& message) { found_.emplace_back(place, message); }
  /// "PLACE: key 'KEY': MESSAGE"
  void add_key(const SourcePlace& place, const std::string& key, const std::string& message);
  /// The same as the last word: what is said later of the key, or of the list that it is an item of, is dropped.
  void add_last(const SourcePlace& place, const std::string& key, const std::string& message) {
    add_key(place, key, message);
    settled_.push_back(key);
  }
  /// True when something was said about the key or one below it: what follows from its value would only repeat that.
  bool mentions(const std::string& key) const;
  /// "PLACE: key 'KEY': value VALUE is not valid; valid: VALID"
  void bad_value(const SourcePlace& place, const std::string& key, const std::string& value, const std::string& valid) {
    add_key(place, key, "value " + value + " is not valid; valid: " + valid);
  }
  bool empty() const { return found_.empty(); }
  size_t size() const { return found_.size(); }
  /// One InvalidArgument whose message has a line for each, ordered by line; ok when there are none.
  Status to_status() const;

 private:
  std::vector<std::pair<SourcePlace, std::string>> found_;
  std::vector<std::string> keys_, settled_;
};

/// Edit distance of two words (insert, delete, replace, and exchange of neighbours cost 1 each).
int edit_distance(const std::string& a, const std::string& b);
/// The candidate nearest to `word`, or "" when none is near enough to be a likely misspelling.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);
/// "a, b, c"
std::string join_words(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace troupe
