#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/config/job_spec_parser.h"
#include "base/config/scalars.h"
#include "base/regular_file.h"

// The defaults that docs/job-spec.md states, held against the spec that nothing was written into.

using namespace troupe;

namespace {

/// "[0.9, 0.95]" for a list of scalars.
std::string text_of(const YamlNode& node) {
  if (node.kind != YamlKind::kSequence) return node.text;
  std::string out;
  for (const YamlNode& item : node.items) out += (out.empty() ? "" : ", ") + item.text;
  return "[" + out + "]";
}

/// Every value of a written spec by the name that the page has for its key.
void flatten(const YamlNode& node, const std::string& path, std::map<std::string, std::set<std::string>>& out) {
  const bool named = path == "groups" || path == "components";
  for (const YamlEntry& e : node.entries)
    flatten(e.value, path.empty() ? e.key : path + "." + (named ? "NAME" : e.key), out);
  for (const YamlNode& item : node.items)
    if (item.is_map()) flatten(item, path, out);
  const bool list_of_maps = !node.items.empty() && node.items[0].is_map();
  if (!node.is_map() && !list_of_maps) out[path].insert(text_of(node));
}

/// What a spec says that holds `data` and the keys without a default.
std::map<std::string, std::set<std::string>> defaults_with(const std::string& data) {
  const auto spec = parse_job_spec("name: j\nmodel: {path: /m}\ntraining: {steps: 1}\n" + data, "/j.yaml");
  REQUIRE(spec.ok());
  Diagnostics found;
  std::map<std::string, std::set<std::string>> out;
  flatten(parse_yaml(job_spec_to_yaml(*spec), "written", found), "", out);
  REQUIRE(found.empty());
  return out;
}

/// Key and default of the rows whose default is one literal.
std::vector<std::pair<std::string, std::string>> rows_of(const std::string& page) {
  static const std::regex row("^\\| `([A-Za-z_.]+)` \\|[^|]*\\| `([^`|]+)` \\|.*");
  std::vector<std::pair<std::string, std::string>> out;
  std::istringstream lines(page);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, row)) out.emplace_back(match[1], match[2]);
  return out;
}

bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = parse_number(a), y = parse_number(b);
  return x && y && *x == *y;
}

}  // namespace

TEST_CASE("the defaults of the job spec's page are those of an empty spec") {
  auto written = defaults_with("data: {sources: [{path: /r.jsonl}]}\neval: {sources: [{path: /e.jsonl}]}\n");
  for (const auto& [key, values] : defaults_with("data: {synthetic: {images: 1}}\n"))
    if (key.rfind("data.synthetic.", 0) == 0) written[key] = values;
  const auto page = read_text_file(std::string(TROUPE_SOURCE_DIR) + "/docs/job-spec.md");
  REQUIRE(page.ok());
  // Rates of components follow the optimizer's; the file's absence of a key is the model folder's value.
  const std::set<std::string> not_written = {"components.NAME.lr"};
  int compared = 0;
  for (const auto& [key, stated] : rows_of(*page)) {
    const auto at = written.find(key);
    if (at == written.end() || not_written.contains(key)) continue;
    ++compared;
    INFO(key << ": the page says " << stated);
    for (const std::string& value : at->second) {
      INFO("the written spec says " << value);
      CHECK(same(stated, value));
    }
  }
  CHECK(compared >= 45);
}
