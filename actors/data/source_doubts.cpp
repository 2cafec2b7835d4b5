#include "actors/data/source_doubts.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "actors/data/record_table.h"

namespace troupe {
namespace {

std::string file_of(const DataSource& source) {
  std::error_code failed;
  const auto file = std::filesystem::weakly_canonical(source.path, failed);
  return failed ? source.path : file.string();
}

/// Whether the records have the key of the source's column, or of one that it leaves out something under a usual key.
bool has(const DataSource& source, const ColumnsFound& found, const std::string& column) {
  const auto& columns = source.spelling.columns;
  return (found.named >> std::distance(columns.begin(), columns.find(column)) & 1u) != 0;
}

std::string words_of(const std::vector<std::string>& keys) {
  std::string text;
  for (const auto& key : keys) text += (text.empty() ? "'" : ", '") + key + "'";
  return text;
}

}  // namespace

std::vector<std::string> column_doubts(const std::vector<DataSource>& sources, const std::vector<ColumnsFound>& found) {
  std::map<std::string, std::vector<std::string>> doubts;  // and of which sources
  std::set<std::string> held;                              // of those, what another source takes back
  for (size_t s = 0; s < sources.size(); ++s) {
    for (const auto& [name, key] : sources[s].spelling.columns) {
      const auto& usual = usual_keys_of(name);
      const bool there = has(sources[s], found[s], name);
      if (name == "ignored" || !found[s].samples) continue;
      if (key.empty() && there)
        doubts["records have something under " + words_of(usual) + ", which the columns of the source leave out"]
            .push_back(sources[s].path);
      const bool usually = std::find(usual.begin(), usual.end(), key) != usual.end();
      if (key.empty() || usually) continue;
      const std::string none =
          "no record that is read has anything under '" + key + "', which columns name for '" + name + "'";
      if (there)
        held.insert(none);
      else
        doubts[none].push_back(sources[s].path);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [doubt, of] : doubts)
    if (held.count(doubt) == 0)
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
      doubts.push_back(source.path + " is trained on and evaluated on; valid: files of their own, or eval.split");
  return doubts;
}

}  // namespace troupe
