#include "actors/data/record_table.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace troupe {
namespace {

struct ColumnRow {
  Column column;
  const char* name;  // in the spec's `columns`
  std::vector<std::string> keys;
};

const std::vector<ColumnRow>& columns() {
  static const std::vector<ColumnRow> table{
      {Column::kTurns, "turns", {"conversations", "messages", "conversation"}},
      {Column::kRole, "role", {"from", "role"}},
      {Column::kContent, "content", {"value", "content"}},
      {Column::kImages, "images", {"image", "images"}},
      {Column::kSystem, "system", {"system"}},
      {Column::kId, "id", {"id"}},
      {Column::kQuestion, "question", {"instruction", "query"}},
      {Column::kInput, "input", {"input"}},
      {Column::kAnswer, "answer", {"output", "response"}},
      {Column::kHistory, "history", {"history"}},
      {Column::kWeight, "weight", {"loss", "loss_scale", "weight"}},
      {Column::kRecordWeight, "record_weight", {}},
      {Column::kVideos, "videos", {"video", "videos"}},
      {Column::kFps, "fps", {"fps", "sample_fps"}},
  };
  return table;
}

struct SpeakerRow {
  Role role;
  const char* name;  // in the spec's `roles`
  std::vector<std::string> words;
};

const std::vector<SpeakerRow>& speakers() {
  static const std::vector<SpeakerRow> table{
      {Role::kUser, "user", {"human", "user"}},
      {Role::kAssistant, "assistant", {"gpt", "assistant"}},
      {Role::kSystem, "system", {"system"}},
      {Role::kTool, "tool", {"tool"}},
  };
  return table;
}

struct RefusedRow {
  std::string_view key, why;
  enum class In { kAll, kTurns, kRecords, kColumns } in = In::kAll;  // elsewhere the word may be a label
  bool of_false = false;                                             // KeyRefusal
};
using In = RefusedRow::In;

constexpr std::string_view kCall = "is not read: write calls into the words of the answer",
                           kThought = "is not read: write thoughts into the words of the answer";
constexpr std::string_view kWords =
    "is not read: the spec's columns say what it is ({input: KEY}, {system: KEY}), or {ignored: KEY}";
constexpr std::array<RefusedRow, 26> kRefused{{
    {"audio", "is not read yet; images, videos and text are"},
    {"audios", "is not read yet; images, videos and text are"},
    {"tools", "is not read yet: tool descriptions would have to be written into the system turn"},
    {"functions", "is not read yet: tool descriptions would have to be written into the system turn"},
    {"tool_calls", kCall},
    {"function_call", kCall},
    {"function_calls", kCall},
    {"tool_call", kCall, In::kTurns},
    {"system_prompt", kWords, In::kRecords},
    {"context", kWords, In::kColumns},
    {"passage", kWords, In::kColumns},
    {"reasoning_content", kThought},
    {"reasoning", kThought, In::kTurns},
    {"thinking", kThought, In::kTurns},
    {"thought", kThought, In::kTurns},
    {"refusal", "is not read: write it into the words of the answer", In::kTurns},
    {"train_detail", "is not read: 'weight' says what a whole answer counts", In::kTurns},
    {"objects", "is not read yet: boxes would have to be written into the text"},
    {"chosen", "is of preference data, which is not trained"},
    {"rejected", "is of preference data, which is not trained"},
    {"rejected_response", "is of preference data, which is not trained"},
    {"rejected_messages", "is of preference data, which is not trained"},
    {"rejected_images", "is of preference data, which is not trained"},
    {"positive_messages", "is of embedding data, which is not trained"},
    {"negative_messages", "is of embedding data, which is not trained"},
    {"kto_tag", "is of preference data, which is not trained", In::kAll, true},
}};

}  // namespace

bool describes_medium(const std::string& key) {
  constexpr std::array<std::string_view, 37> kKeys{
      "type",     "text", "image",    "image_url", "images", "video",      "video_url", "videos",
      "url",      "path", "bytes",    "base64",    "detail", "width",      "height",    "size",
      "channels", "mode", "format",   "mime_type", "mime",   "media_type", "id",        "image_id",
      "video_id", "name", "filename", "file_name", "alt",    "title",      "source",    "license",
      "hash",     "md5",  "sha256",   "duration",  "index"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

const char* role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "?";
}

bool is_ignored(const std::string& key, const RecordSpelling& spelling) {
  const auto ignored = spelling.columns.find("ignored");
  if (ignored == spelling.columns.end()) return false;
  std::istringstream keys(ignored->second);
  for (std::string one; std::getline(keys, one, ',');) {
    const size_t begin = one.find_first_not_of(' '), end = one.find_last_not_of(' ');
    if (begin != std::string::npos && one.substr(begin, end - begin + 1) == key) return true;
  }
  return false;
}

std::vector<std::string> keys_of(Column column, const RecordSpelling& spelling) {
  for (const auto& row : columns()) {
    if (row.column != column) continue;
    const auto named = spelling.columns.find(row.name);
    if (named == spelling.columns.end()) {
      auto keys = row.keys;
      std::erase_if(keys, [&](const std::string& key) { return is_ignored(key, spelling); });
      return keys;
    }
    return named->second.empty() ? std::vector<std::string>() : std::vector<std::string>{named->second};
  }
  return {};
}

std::vector<std::string> usual_keys_of(const std::string& name) {
  for (const auto& row : columns())
    if (name == row.name) return row.keys;
  return {};
}

std::set<std::string> known_keys(const RecordSpelling& spelling) {
  std::set<std::string> keys{"type", "text", "image", "image_url", "url", "path", "bytes", "base64"};  // of a part
  for (const auto& row : columns())
    for (const auto& key : keys_of(row.column, spelling)) keys.insert(key);
  for (const auto& row : kRefused) keys.emplace(row.key);
  keys.insert(kSizeSettings.begin(), kSizeSettings.end());
  keys.insert(kVideoSettings.begin(), kVideoSettings.end());
  return keys;
}

SpeakerWord speaker_of(const std::string& word, const RecordSpelling& spelling) {
  std::string name;
  if (const auto named = spelling.roles.find(word); named != spelling.roles.end()) name = named->second;
  for (const auto& row : speakers()) {
    if (!name.empty() && name == row.name) return {true, row.role};
    for (const auto& known : row.words)
      if (name.empty() && known == word) return {true, row.role};
  }
  return {};
}

std::string speaker_words(const RecordSpelling& spelling) {
  std::vector<std::string> words;
  for (const auto& row : speakers()) words.insert(words.end(), row.words.begin(), row.words.end());
  for (const auto& [word, meaning] : spelling.roles) words.push_back(word);
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

KeyRefusal refusal_of_key(const std::string& key, KeyPlace place) {
  for (const auto& row : kRefused) {
    if (key != row.key) continue;
    if (row.in == In::kTurns && place != KeyPlace::kTurn) return {};
    if (row.in == In::kRecords && place == KeyPlace::kTurn) return {};
    if (row.in == In::kColumns && place != KeyPlace::kColumns) return {};
    return {row.why, row.of_false};
  }
  return {};
}

}  // namespace troupe
