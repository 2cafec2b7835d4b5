#include "base/config/dataset_info.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/config/diagnostics.h"
#include "base/json_text.h"
#include "base/regular_file.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Its columns and ours; those that are not read are refused when they are given another name than the record table
/// refuses by itself.
const std::map<std::string, std::string> kColumns{{"prompt", "question"}, {"query", "input"},    {"response", "answer"},
                                                  {"history", "history"}, {"messages", "turns"}, {"system", "system"},
                                                  {"images", "images"},   {"videos", "videos"}};
const std::map<std::string, std::string> kTags{{"role_tag", "role"}, {"content_tag", "content"}};
const std::map<std::string, std::string> kSpeakerTags{
    {"user_tag", "user"}, {"assistant_tag", "assistant"}, {"system_tag", "system"}};
/// Words of speakers that no record may have: a turn by one of them is refused by name when it comes.
const std::vector<std::string> kUnreadTags{"observation_tag", "function_tag"};
const std::vector<std::string> kKnownKeys{"file_name", "formatting", "columns", "tags",  "num_samples",
                                          "ranking",   "split",      "folder",  "subset"};

/// Where LLaMA-Factory looks before file_name.
const std::vector<std::string> kElsewhere{"hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name"};

/// What an entry without columns means, by its formatting.
const std::map<std::string, std::string> kAlpaca{{"question", "instruction"}, {"input", "input"}, {"answer", "output"}};
const std::map<std::string, std::string> kSharegpt{{"turns", "conversations"}};

std::vector<std::string> names_of(const std::map<std::string, std::string>& table) {
  std::vector<std::string> names;
  for (const auto& [name, ours] : table) names.push_back(name);
  return names;
}

Status read_columns(const Json& columns, RecordSpelling& spelling) {
  if (!columns.is_object())
    return invalid_argument(std::string("key 'columns' is of type ") + columns.type_name() + ", not an object");
  for (const auto& [name, key] : columns.items()) {
    if (key.is_null()) continue;
    if (!key.is_string())
      return invalid_argument("column '" + name + "' is of type " + key.type_name() + ", not a key");
    if (key.get<std::string>().empty()) continue;
    const auto known = kColumns.find(name);
    if (known != kColumns.end())
      spelling.columns[known->second] = key.get<std::string>();
    else if (name != key.get<std::string>())
      return invalid_argument("column '" + name + "' (key '" + key.get<std::string>() +
                              "') is not read; valid: " + join_words(names_of(kColumns)));
  }
  return {};
}

/// What is trained stands in columns that the formatting decides.
Status check_columns(const std::map<std::string, std::string>& named, const std::string& formatting) {
  const auto has = [&](const char* column) { return named.count(column) > 0; };
  if (formatting == "sharegpt" && !has("turns"))
    return invalid_argument("has columns without 'messages', which holds the turns of formatting sharegpt");
  if (formatting == "alpaca" && (!has("answer") || !(has("question") || has("input"))))
    return invalid_argument(
        "has columns without 'prompt' and 'response', which hold the turns of formatting alpaca; valid: both, or "
        "formatting sharegpt with 'messages'");
  return {};
}

/// Columns that an entry does not name are not read, whatever a record holds under their usual keys.
Status read_spelling(const Json& entry, const std::string& formatting, RecordSpelling& spelling) {
  if (entry.contains("columns")) {
    TROUPE_RETURN_IF_ERROR(read_columns(entry["columns"], spelling));
    TROUPE_RETURN_IF_ERROR(check_columns(spelling.columns, formatting));
  } else {
    spelling.columns = formatting == "alpaca" ? kAlpaca : kSharegpt;
  }
  for (const auto& [name, column] : kColumns) spelling.columns.emplace(column, "");
  return {};
}

Status read_number(const Json& entry, DataSource& source) {
  const auto found = entry.find("num_samples");
  if (found == entry.end() || found->is_null()) return {};
  if (!found->is_number_integer() || found->get<int64_t>() < 1)
    return invalid_argument("has num_samples " + found->dump() + "; valid: a number of records from 1");
  source.take_records = found->get<int64_t>();
  return {};
}

Status read_tags(const Json& tags, RecordSpelling& spelling) {
  for (const auto& [name, word] : tags.items()) {
    if (word.is_null() || std::find(kUnreadTags.begin(), kUnreadTags.end(), name) != kUnreadTags.end()) continue;
    if (!word.is_string() || word.get<std::string>().empty())
      return invalid_argument("tag '" + name + "' is " + word.dump() + ", not a word");
    if (const auto key = kTags.find(name); key != kTags.end())
      spelling.columns[key->second] = word.get<std::string>();
    else if (const auto speaker = kSpeakerTags.find(name); speaker != kSpeakerTags.end())
      spelling.roles[word.get<std::string>()] = speaker->second;
    else
      return invalid_argument("tag '" + name + "' is not known");
  }
  return {};
}

Result<DataSource> read_dataset(const Json& entry, const fs::path& folder) {
  if (!entry.is_object()) return invalid_argument("is no object");
  for (const auto& [key, value] : entry.items()) {
    if (std::find(kElsewhere.begin(), kElsewhere.end(), key) != kElsewhere.end() && !value.is_null() && value != "")
      return invalid_argument("lies elsewhere (key '" + key + "'" +
                              (entry.contains("file_name") ? ", which LLaMA-Factory takes before file_name" : "") +
                              "); valid: file_name of the downloaded file, without the key");
    const bool known =
        std::find(kKnownKeys.begin(), kKnownKeys.end(), key) != kKnownKeys.end() || key.ends_with("_url");
    if (!known) return invalid_argument("has key '" + key + "', which is not known; valid: " + join_words(kKnownKeys));
  }
  if (!entry.contains("file_name") || !entry["file_name"].is_string()) return invalid_argument("has no file_name");
  if (entry.value("ranking", false)) return invalid_argument("holds preference data (ranking), which are not trained");
  const std::string formatting = entry.value("formatting", "alpaca");
  if (formatting != "alpaca" && formatting != "sharegpt")
    return invalid_argument("has formatting '" + formatting + "'; valid: alpaca, sharegpt");
  DataSource source;
  source.path = (folder / entry["file_name"].get<std::string>()).lexically_normal().string();
  source.image_root = folder.string();
  TROUPE_RETURN_IF_ERROR(read_number(entry, source));
  TROUPE_RETURN_IF_ERROR(read_spelling(entry, formatting, source.spelling));
  if (entry.contains("tags")) TROUPE_RETURN_IF_ERROR(read_tags(entry["tags"], source.spelling));
  return source;
}

}  // namespace

Result<std::vector<DataSource>> read_dataset_info(const std::string& path, const std::vector<std::string>& names) {
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  const Result<Json> parsed = parse_ordered_json(text);
  if (!parsed.ok()) return invalid_argument(path + " " + parsed.error().message);
  std::vector<DataSource> sources;
  try {
    const Json& root = *parsed;
    if (!root.is_object()) return invalid_argument(path + " is no list of data sets by name");
    std::vector<std::string> known;
    for (const auto& item : root.items()) known.push_back(item.key());
    for (const auto& name : names) {
      if (!root.contains(name))
        return invalid_argument("data set '" + name + "' is not in " + path + "; valid: " + join_words(known));
      auto source = read_dataset(root[name], fs::path(path).parent_path());
      if (!source.ok()) return invalid_argument("data set '" + name + "' of " + path + " " + source.error().message);
      sources.push_back(std::move(source).value());
    }
  } catch (const Json::exception& e) {
    return invalid_argument(path + " cannot be read: " + json_complaint(e));
  }
  return sources;
}

}  // namespace troupe
