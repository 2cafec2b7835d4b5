#include "actors/data/record_table.h"

#include <algorithm>
#include <array>

#include "actors/data/key_words.h"
#include "base/config/record_spelling.h"

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
  bool begins = false;                                               // any key that begins so
};
using In = RefusedRow::In;

constexpr std::string_view kCall = "is not read: write calls into the words of the answer",
                           kThought = "is not read: write thoughts into the words of the answer";
constexpr std::string_view kWords =
    "is not read: the spec's columns say what it is ({input: KEY}, {system: KEY}), or {ignored: KEY}";
constexpr std::array<RefusedRow, 27> kRefused{{
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
    {"rejected_", "is of preference data, which is not trained", In::kAll, false, true},
    {"kto_tag", "is of preference data, which is not trained", In::kAll, true},
}};

}  // namespace

std::span<const LossMark> loss_marks() {
  static constexpr std::array<LossMark, 36> kMarks{
      {{"train", true, true},          {"trainable", true, true},       {"training", true, false},
       {"learn", true, true},          {"supervised", true, false},     {"supervise", true, true},
       {"compute_loss", true, true},   {"calculate_loss", true, true},  {"loss_mask", true, true},
       {"loss_masks", true, true},     {"loss_weight", true, true},     {"sample_weight", true, true},
       {"is_trainable", true, true},   {"do_train", true, true},        {"should_train", true, true},
       {"train_on_turn", true, true},  {"use_loss", true, true},        {"no_train", false, true},
       {"mask", false, false},         {"masked", false, false},        {"is_masked", false, false},
       {"ignore", false, false},       {"ignore_loss", false, true},    {"mask_loss", false, true},
       {"step_loss_mask", true, true}, {"turn_loss_mask", true, true},  {"assistant_loss_mask", true, true},
       {"assistant_mask", true, true}, {"response_mask", true, true},   {"train_mask", true, true},
       {"token_weight", true, true},   {"loss_multiplier", true, true}, {"use_for_training", true, true},
       {"mask_history", false, true},  {"no_loss", false, true},        {"skip_loss", false, true}}};
  return kMarks;
}

bool sets_medium(std::string_view key) {
  for (const std::string_view other : {"fps", "sample_fps", "raw_fps", "total_frames", "frame_count"})
    if (key == other) return false;  // read where there is a video, or what the file has
  for (const std::string_view end : {"_id", "_url", "_name", "_score"})
    if (key.ends_with(end)) return false;
  constexpr std::array<std::string_view, 50> kWords{
      "crop",    "cropped",  "cropbox", "bbox",     "box",    "boxes", "bounds",  "rect",       "polygon",
      "coords",  "rotate",   "rotated", "rotation", "angle",  "flip",  "flipped", "hflip",      "vflip",
      "mirror",  "resize",   "resized", "scale",    "region", "roi",   "frame",   "frames",     "nframes",
      "segment", "segments", "clip",    "trim",     "start",  "begin", "end",     "stop",       "offset",
      "range",   "interval", "stride",  "every",    "min",    "max",   "pixels",  "timestamps", "indices",
      "fps",     "zoom",     "augment", "sampling", "kwargs"};
  return std::ranges::any_of(key_words(key), [&](const std::string& word) {
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
  });
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

std::vector<std::string> keys_of(Column column, const RecordSpelling& spelling) {
  for (const auto& row : columns()) {
    if (row.column != column) continue;
    const auto named = spelling.columns.find(row.name);
    if (named == spelling.columns.end()) {
      auto keys = row.keys;
      // Of these what stands in turns is read, and what stands in the record may be ignored.
      if (!is_turn_column(row.name))
        std::erase_if(keys, [&](const std::string& key) { return is_ignored(key, spelling); });
      return keys;
    }
    return named->second.empty() ? std::vector<std::string>() : std::vector<std::string>{named->second};
  }
  return {};
}

const std::vector<std::string>& usual_keys_of(const std::string& name) {
  static const std::vector<std::string> none;
  for (const auto& row : columns())
    if (name == row.name) return row.keys;
  return none;
}

std::set<std::string> known_keys(const RecordSpelling& spelling) {
  std::set<std::string> keys{"type", "text", "image", "image_url", "url", "path", "bytes", "base64"};  // of a part
  for (const auto& row : columns())
    for (const auto& key : keys_of(row.column, spelling)) keys.insert(key);
  for (const auto& row : kRefused)
    if (!row.begins) keys.emplace(row.key);
  for (const LossMark& mark : loss_marks()) keys.emplace(mark.key);
  keys.emplace("label");  // of preference data
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
    if (row.begins ? !key.starts_with(row.key) : key != row.key) continue;
    if (row.in == In::kTurns && place != KeyPlace::kTurn) return {};
    if (row.in == In::kRecords && place == KeyPlace::kTurn) return {};
    if (row.in == In::kColumns && place != KeyPlace::kColumns) return {};
    return {row.why, row.of_false};
  }
  return {};
}

}  // namespace troupe
