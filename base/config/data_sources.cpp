#include "base/config/data_sources.h"

#include <algorithm>
#include <filesystem>

#include "base/config/dataset_info.h"
#include "base/config/record_spelling.h"
#include "base/config/scalars.h"

namespace troupe {
namespace {

const std::vector<std::string> kColumns{"turns",  "role",    "content", "images",        "videos",
                                        "fps",    "system",  "id",      "question",      "input",
                                        "answer", "history", "weight",  "record_weight", "ignored"};
const std::vector<std::string> kSpeakers{"user", "assistant", "system", "tool"};

void read_take(const Section& s, DataSource& source) {
  const YamlNode* n = s.find("take");
  if (!n) return;
  const std::string text = n->kind == YamlKind::kScalar && !n->quoted ? n->text : "";
  const bool whole = parse_integer(text).has_value();
  const int64_t records = parse_integer(text).value_or(0);
  const double fraction = parse_number(text).value_or(0);
  if (whole && records >= 1)
    source.take_records = records;
  else if (!whole && fraction > 0 && fraction <= 1)
    source.take_fraction = fraction;
  else
    s.bad_value("take", n->describe(), "a fraction above 0.0 up to 1.0, or a number of records from 1");
}

constexpr double kMostWeight = 1000;

void read_weight(const Section& s, DataSource& source) {
  const YamlNode* n = s.find("weight");
  if (!n) return;
  const double weight = n->kind == YamlKind::kScalar && !n->quoted ? parse_number(n->text).value_or(0) : 0;
  if (weight > 0 && weight <= kMostWeight)
    source.weight = weight;
  else
    s.bad_value("weight", n->describe(), "a number above 0 up to " + number_text(kMostWeight));
}

/// A mapping of words to words; `may_be_empty`: "" is one too.
std::map<std::string, std::string> read_words(const Section& s, const std::string& key, const std::string& valid,
                                              bool may_be_empty) {
  std::map<std::string, std::string> out;
  const Section below = s.present() ? s.section(key) : s;
  if (!s.has(key) || !below.present()) return out;
  for (const YamlEntry& e : s.find(key)->entries) {
    if (e.key == "ignored" && e.value.kind == YamlKind::kSequence)
      below.bad_value(e.key, e.value.describe(), "keys in one text, with commas between: \"avatar, logo\"");
    else if (e.value.kind != YamlKind::kScalar || (e.value.text.empty() && !(may_be_empty && e.value.quoted)))
      below.bad_value(e.key, e.value.describe(), valid);
    else
      out[e.key] = e.value.text;
  }
  return out;
}

/// The column that reads the key where one that is ignored would be, in the record; empty: none does.
std::string column_of(std::string_view key, const RecordSpelling& spelling) {
  for (const auto& [name, of] : spelling.columns)
    if (of == key && name != "ignored" && !is_turn_column(name)) return name;
  return {};
}

/// Keys that mean nothing can mean nothing else.
void check_ignored(const Section& section, const RecordSpelling& spelling) {
  for (const auto key : ignored_keys(spelling))
    if (const auto name = column_of(key, spelling); !name.empty())
      section.bad_value("ignored", "'" + std::string(key) + "'", "keys that no column names; " + name + " names it");
}

RecordSpelling read_spelling(const Section& s) {
  RecordSpelling out;
  const Section columns = s.present() ? s.section("columns") : s;
  for (auto& [name, key] : read_words(s, "columns", "the key that records keep it under, or \"\" for none",
                                      /*may_be_empty=*/true)) {
    if (std::find(kColumns.begin(), kColumns.end(), name) == kColumns.end())
      columns.fail(name, "unknown column; valid: " + join_words(kColumns));
    if (key.empty() && (name == "role" || name == "content" || name == "ignored"))
      columns.bad_value(name, "\"\"",
                        name == "ignored" ? "keys, with commas between" : "the key that turns keep it under");
    out.columns[name] = key;
  }
  check_ignored(columns, out);
  const Section roles = s.present() ? s.section("roles") : s;
  for (auto& [word, speaker] : read_words(s, "roles", join_words(kSpeakers), /*may_be_empty=*/false)) {
    if (std::find(kSpeakers.begin(), kSpeakers.end(), speaker) == kSpeakers.end())
      roles.bad_value(word, "'" + speaker + "'", join_words(kSpeakers));
    out.roles[word] = speaker;
  }
  return out;
}

/// `own` goes before `shared`: what it ignores no column of `shared` reads, and what it reads `shared` does not ignore.
RecordSpelling merged(RecordSpelling own, RecordSpelling shared) {
  for (const auto key : ignored_keys(own))
    for (auto& [name, of] : shared.columns)
      if (of == key && name != "ignored" && !is_turn_column(name)) of.clear();
  std::string ignored;
  for (const auto key : ignored_keys(shared))
    if (column_of(key, own).empty()) ignored += (ignored.empty() ? "" : ", ") + std::string(key);
  shared.columns.erase("ignored");
  if (!ignored.empty()) shared.columns["ignored"] = ignored;
  own.columns.insert(shared.columns.begin(), shared.columns.end());
  own.roles.insert(shared.roles.begin(), shared.roles.end());
  return own;
}

/// The names under `datasets`; empty when the key is absent.
std::vector<std::string> dataset_names(const Section& entry) {
  std::vector<std::string> names;
  const YamlNode* n = entry.has("datasets") ? entry.find("datasets") : nullptr;
  if (!n) return names;
  if (n->kind == YamlKind::kScalar) names.push_back(n->text);
  for (const YamlNode& item : n->items)
    if (item.kind == YamlKind::kScalar) names.push_back(item.text);
  if (names.empty() || (n->kind == YamlKind::kSequence && names.size() != n->items.size()))
    entry.bad_value("datasets", n->describe(), "a name or a list of names of the file");
  return names;
}

/// One entry of the list: a source, or the sources of a dataset_info.json.
void read_entry(const Section& entry, const RecordSpelling& shared, const std::string& folder,
                std::vector<DataSource>& out) {
  DataSource source;
  source.key = entry.path();
  entry.string("path", source.path);
  entry.string("image_root", source.image_root);
  for (const auto& [key, path] : {std::pair("path", source.path), std::pair("image_root", source.image_root)})
    if (entry.has(key) && path.empty() && !entry.diagnostics().mentions(entry.full_name(key)))
      entry.bad_value(key, "\"\"", "a path");
  const bool root_given = !source.image_root.empty();
  source.path = resolve_path(source.path, folder);
  if (root_given) source.image_root = resolve_path(source.image_root, folder);
  read_take(entry, source);
  read_weight(entry, source);
  source.spelling = merged(read_spelling(entry), shared);
  const auto names = dataset_names(entry);
  if (!entry.has("datasets")) {
    const std::filesystem::path path(source.path);
    if (path.filename() == "dataset_info.json")
      return entry.bad_value("path", "'" + source.path + "'",
                             "datasets: [NAMES] beside it, which says which of its entries are meant");
    std::error_code failed;
    if (path.filename().string().find_first_of("*?{[") != std::string::npos && !std::filesystem::exists(path, failed))
      return entry.bad_value("path", "'" + source.path + "'", "one file; several are sources of their own");
    if (!root_given) source.image_root = path.parent_path().string();
    out.push_back(std::move(source));
    return;
  }
  if (names.empty()) return;
  auto listed = read_dataset_info(source.path, names);
  if (!listed.ok()) return entry.fail("datasets", listed.error().message);
  for (DataSource& found : *listed) {
    if (root_given) found.image_root = source.image_root;
    if (entry.has("take")) {
      found.take_fraction = source.take_fraction;
      found.take_records = source.take_records;
    }
    found.weight = source.weight;
    found.spelling = merged(source.spelling, found.spelling);
    found.key = source.key;
    out.push_back(std::move(found));
  }
}

}  // namespace

std::string resolve_path(const std::string& path, const std::string& folder) {
  if (path.empty()) return path;
  std::filesystem::path p(path);
  if (p.is_relative()) p = std::filesystem::path(folder) / p;
  std::string text = p.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::vector<DataSource> read_data_sources(const Section& section, const Section& data, const std::string& folder) {
  std::vector<DataSource> out;
  RecordSpelling shared;
  if (data.present()) shared = read_spelling(data);
  const YamlNode* n = section.find("sources");
  if (!n) return out;
  if (n->kind != YamlKind::kSequence) {
    section.bad_value("sources", n->describe(), "a list such as [{path: train.jsonl, image_root: images}]");
    return out;
  }
  for (size_t i = 0; i < n->items.size(); ++i) {
    const YamlNode& item = n->items[i];
    const std::string name = section.full_name("sources") + "[" + std::to_string(i) + "]";
    const Section entry(item.is_map() ? &item : nullptr, name, item.place, section.diagnostics());
    if (!entry.has("path"))
      entry.fail("path", "is missing; valid: a JSON, JSONL or Parquet file of records, or a tar archive of them");
    else
      read_entry(entry, shared, folder, out);
  }
  return out;
}

}  // namespace troupe
