#include "actors/data/record.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr size_t kQuotedBytes = 60;  // of a value in a message

std::string quoted(std::string s) {
  if (s.size() > kQuotedBytes) {
    size_t end = kQuotedBytes;
    while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xC0u) == 0x80u) --end;
    s = s.substr(0, end) + "...";
  }
  return "'" + s + "'";
}

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_array() && value.empty());
}

/// The value of `key`, or nullptr when it is missing, null, "" or [].
const Json* present(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || is_empty(*found) ? nullptr : &*found;
}

std::optional<Role> role_of(const std::string& word) {
  if (word == "human" || word == "user") return Role::kUser;
  if (word == "gpt" || word == "assistant") return Role::kAssistant;
  if (word == "system") return Role::kSystem;
  return std::nullopt;
}

Status read_image_list(const Json& value, const std::string& key, std::vector<std::string>& images) {
  if (value.is_string()) {
    images.push_back(value.get<std::string>());
    return {};
  }
  if (!value.is_array())
    return invalid_argument("key '" + key + "' is a " + value.type_name() +
                            "; a path or a list of paths is understood");
  for (const auto& item : value) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty())
      return invalid_argument("key '" + key + "' holds " +
                              (item.is_string() ? "an empty path" : std::string("a ") + item.type_name()) +
                              "; paths are understood");
    images.push_back(item.get<std::string>());
  }
  return {};
}

bool looks_like_picture(const Json& value) {
  if (value.is_array()) return std::any_of(value.begin(), value.end(), looks_like_picture);
  if (!value.is_string()) return false;
  std::string s = value.get<std::string>();
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* end : {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
    if (s.ends_with(end)) return true;
  return false;
}

Status read_images(const Json& object, Record& record) {
  for (const char* key : {"video", "videos", "audio", "audios"})
    if (present(object, key))
      return invalid_argument(std::string("key '") + key + "' is not read yet; images and text are");
  const Json *one = present(object, "image"), *many = present(object, "images");
  if (one != nullptr && many != nullptr && *one != *many)
    return invalid_argument("has both 'image' and 'images', and they differ");
  if (const Json* value = one != nullptr ? one : many)
    return read_image_list(*value, one != nullptr ? "image" : "images", record.images);
  // Pictures under a key that is not read must not vanish silently.
  for (const auto& [key, value] : object.items())
    if (looks_like_picture(value))
      return invalid_argument("key '" + key + "' names pictures but is not read; use 'image' or 'images'");
  return {};
}

/// One turn of a list in which `role_key` names the speaker and `text_key` holds the words.
Status read_turn(const Json& turn, size_t number, const char* role_key, const char* text_key, Record& record) {
  const std::string where = "turn " + std::to_string(number);
  if (!turn.is_object()) return invalid_argument(where + " is a " + std::string(turn.type_name()) + ", not an object");
  const auto role = turn.find(role_key), text = turn.find(text_key);
  if (role == turn.end() || !role->is_string()) return invalid_argument(where + " has no '" + role_key + "'");
  const auto known = role_of(role->get_ref<const std::string&>());
  if (!known)
    return invalid_argument(where + " is by " + quoted(role->get<std::string>()) +
                            "; human, user, gpt, assistant and system are understood");
  if (text == turn.end()) return invalid_argument(where + " has no '" + text_key + "'");
  if (!text->is_string())
    return invalid_argument(where + ": '" + text_key + "' is a " + text->type_name() + "; a string is understood");
  record.turns.push_back({*known, text->get<std::string>()});
  return {};
}

Status read_turns(const Json& object, Record& record) {
  if (const Json* system = present(object, "system")) {
    if (!system->is_string())
      return invalid_argument("key 'system' is a " + std::string(system->type_name()) + "; a string is understood");
    record.turns.push_back({Role::kSystem, system->get<std::string>()});
  }
  const bool sharegpt = object.contains("conversations"), openai = object.contains("messages");
  if (sharegpt && openai) return invalid_argument("has both 'conversations' and 'messages'");
  if (!sharegpt && !openai) return invalid_argument("has neither 'conversations' nor 'messages'");
  const char* key = sharegpt ? "conversations" : "messages";
  const Json& list = object.at(key);
  if (is_empty(list)) return invalid_argument(std::string("'") + key + "' is empty");
  if (!list.is_array())
    return invalid_argument(std::string("'") + key + "' is a " + list.type_name() + ", not a list of turns");
  for (size_t i = 0; i < list.size(); ++i) {
    // Either pair of spellings may stand in either list.
    const bool openai_turn = list[i].is_object() && list[i].contains("role");
    TROUPE_RETURN_IF_ERROR(
        read_turn(list[i], i + 1, openai_turn ? "role" : "from", openai_turn ? "content" : "value", record));
  }
  return {};
}

Status check_order(const std::vector<Turn>& turns) {
  const size_t first = !turns.empty() && turns[0].role == Role::kSystem ? 1 : 0;
  if (turns.size() == first) return invalid_argument("has no turn besides the system's");
  for (size_t i = first; i < turns.size(); ++i) {
    const Role due = (i - first) % 2 == 0 ? Role::kUser : Role::kAssistant;
    if (turns[i].role == due) continue;
    if (turns[i].role == Role::kSystem) return invalid_argument("has a system turn that is not the first");
    if (i == first) return invalid_argument("starts with an answer; a question must come first");
    return invalid_argument(std::string("has two ") + role_name(turns[i].role) +
                            " turns in a row; they must alternate");
  }
  if (turns.back().role != Role::kAssistant) return invalid_argument("ends with a question that has no answer");
  return {};
}

Status check_placeholders(const Record& record) {
  const size_t placeholders = count_placeholders(record), images = record.images.size();
  if (placeholders == images) return {};
  return invalid_argument(std::to_string(placeholders) + " " + std::string(kImagePlaceholder) +
                          (placeholders == 1 ? " placeholder" : " placeholders") + " in the user turns, but " +
                          std::to_string(images) + (images == 1 ? " image" : " images"));
}

Status read_record(const Json& object, Record& record) {
  if (!object.is_object()) return invalid_argument("is a " + std::string(object.type_name()) + ", not an object");
  if (const auto id = object.find("id"); id != object.end() && !id->is_null())
    record.id = id->is_string() ? id->get<std::string>() : id->dump();
  TROUPE_RETURN_IF_ERROR(read_turns(object, record));
  TROUPE_RETURN_IF_ERROR(check_order(record.turns));
  TROUPE_RETURN_IF_ERROR(read_images(object, record));
  return check_placeholders(record);
}

}  // namespace

const char* role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
  }
  return "?";
}

size_t count_placeholders(const Record& record) {
  size_t n = 0;
  for (const auto& turn : record.turns) {
    if (turn.role != Role::kUser) continue;
    for (size_t at = turn.text.find(kImagePlaceholder); at != std::string::npos;
         at = turn.text.find(kImagePlaceholder, at + kImagePlaceholder.size()))
      ++n;
  }
  return n;
}

Status parse_record(std::string_view json, Record& record) {
  try {
    return read_record(Json::parse(json.begin(), json.end()), record);
  } catch (const Json::exception& e) {
    std::string what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 5: ..."
    if (const size_t bracket = what.find("] "); bracket != std::string::npos) what = what.substr(bracket + 2);
    return invalid_argument("is not valid JSON: " + what);
  }
}

}  // namespace troupe
