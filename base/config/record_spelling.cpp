#include "base/config/record_spelling.h"

#include <algorithm>

namespace troupe {

namespace {

std::string_view ignored_text(const RecordSpelling& spelling) {
  const auto ignored = spelling.columns.find("ignored");
  return ignored == spelling.columns.end() ? std::string_view() : ignored->second;
}

/// Takes the first key off the list; it may be empty.
std::string_view take_key(std::string_view& rest) {
  std::string_view one = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  one.remove_prefix(std::min(one.size(), one.find_first_not_of(' ')));
  return one.substr(0, one.find_last_not_of(' ') + 1);
}

}  // namespace

std::vector<std::string_view> ignored_keys(const RecordSpelling& spelling) {
  std::vector<std::string_view> keys;
  for (std::string_view rest = ignored_text(spelling); !rest.empty();)
    if (const auto key = take_key(rest); !key.empty()) keys.push_back(key);
  return keys;
}

bool is_ignored(std::string_view key, const RecordSpelling& spelling) {
  for (std::string_view rest = ignored_text(spelling); !rest.empty();)
    if (take_key(rest) == key && !key.empty()) return true;
  return false;
}

bool is_turn_column(std::string_view name) { return name == "role" || name == "content" || name == "weight"; }

}  // namespace troupe
