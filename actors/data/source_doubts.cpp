#include "actors/data/source_doubts.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "actors/data/record_table.h"

namespace troupe {
namespace {

constexpr const char* kRemedy = "; valid: columns that name the key, or name it under ignored";

std::string file_of(const DataSource& source) {
  std::error_code failed;
  const auto file = std::filesystem::weakly_canonical(source.path, failed);
  return failed ? source.path : file.string();
}

std::string words_of(const std::vector<std::string>& keys) {
  std::string text;
  for (const auto& key : keys) text += (text.empty() ? "'" : ", '") + key + "'";
  return text;
}

}  // namespace

std::vector<std::string> column_doubts(const std::vector<DataSource>& sources, const std::vector<ColumnsFound>& found) {
  std::map<std::string, std::vector<std::string>> doubts;  // and of which sources
  std::set<std::string> elsewhere;                         // of those, what another source takes back
  for (size_t s = 0; s < sources.size(); ++s) {
    uint32_t bit = 1;
    for (const auto& [name, key] : sources[s].spelling.columns) {
      const bool held = (found[s].named.held & bit) != 0, usual = (found[s].named.usual & bit) != 0;
      bit <<= 1;
      if (name == "ignored" || !found[s].samples) continue;
      const auto& keys = usual_keys_of(name);
      if (usual && key.empty() && name != "id")
        doubts["records have something under " + words_of(keys) + ", which the columns of the source leave out" +
               kRemedy]
            .push_back(sources[s].path);
      if (usual && !key.empty() && name != "id")
        doubts["records without '" + key + "' have something under " + words_of(keys) +
               ", which is not read, as columns " + "name '" + key + "' for '" + name + "'" + kRemedy]
            .push_back(sources[s].path);
      if (key.empty() || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const std::string none =
          "no record that is read has anything under '" + key + "', which columns name for '" + name + "'";
      if (held)
        elsewhere.insert(none);
      else
        doubts[none].push_back(sources[s].path);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [doubt, of] : doubts)
    if (elsewhere.count(doubt) == 0)
      texts.push_back(of[0] + (of.size() > 1 ? " and " + std::to_string(of.size() - 1) + " more: " : ": ") + doubt);
  return texts;
}

std::vector<std::string> twice_doubts(const std::vector<DataSource>& sources) {
  std::vector<std::string> doubts;
  std::map<std::pair<std::string, std::map<std::string, std::string>>, int> seen;  // other columns are other texts
  for (const DataSource& source : sources)
    if (++seen[{file_of(source), source.spelling.columns}] == 2)
      doubts.push_back(source.path +
                       " is a source more than once: weight says how often records come, and what eval.split would "
                       "hold out of one may be trained from another");
  return doubts;
}

std::vector<std::string> shared_doubts(const std::vector<DataSource>& data, const std::vector<DataSource>& eval) {
  std::set<std::string> trained;
  for (const DataSource& source : data) trained.insert(file_of(source));
  std::vector<std::string> doubts;
  for (const DataSource& source : eval)
    if (trained.count(file_of(source)) > 0)
      doubts.push_back(
          source.path +
          " is among data.sources and eval.sources: a loss on what is trained on is not that of held-out records");
  return doubts;
}

}  // namespace troupe
