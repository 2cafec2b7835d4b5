#include "actors/data/source_doubts.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "actors/data/record_table.h"

namespace troupe {

std::vector<std::string> column_doubts(const DataSource& source, uint32_t named) {
  std::vector<std::string> doubts;
  uint32_t bit = 1;
  for (const auto& [name, key] : source.spelling.columns) {
    const bool has = (named & bit) != 0;
    bit <<= 1;
    const auto usual = usual_keys_of(name);
    if (name == "ignored" || has != key.empty()) continue;
    if (has)
      doubts.push_back(source.path + ": records have '" + usual[0] + "', which the columns of the source leave out");
    else if (std::find(usual.begin(), usual.end(), key) == usual.end())
      doubts.push_back(source.path + ": no record has the key '" + key + "', which columns name for '" + name + "'");
  }
  return doubts;
}

std::vector<std::string> twice_doubts(const std::vector<DataSource>& sources) {
  std::vector<std::string> doubts;
  std::map<std::string, int> seen;
  for (const DataSource& source : sources) {
    std::error_code ignored;
    const auto file = std::filesystem::weakly_canonical(source.path, ignored);
    if (++seen[ignored ? source.path : file.string()] == 2)
      doubts.push_back(source.path +
                       " is a source twice: what eval.split holds out of one may be trained from the other; weight: 2 "
                       "gives its records twice");
  }
  return doubts;
}

}  // namespace troupe
