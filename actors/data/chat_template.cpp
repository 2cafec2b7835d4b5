#include "actors/data/chat_template.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "actors/data/template_probes.h"
#include "actors/data/text_normalizer.h"
#include "actors/jinja/template.h"
#include "base/json_text.h"
#include "base/mapped_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr const char* kValid =
    "; valid: a template that writes <|im_start|>ROLE, newline, text, <|im_end|>, newline, turn by turn";

/// The template in a JSON file's key chat_template: a string, or a list of named ones of which "default" counts.
Result<std::optional<std::string>> template_in_json(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::optional<std::string>();
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  const Result<Json> parsed = parse_json(file->bytes());
  if (!parsed.ok()) return invalid_argument(path + " " + parsed.error().message);
  try {
    const Json& root = *parsed;
    const Json found = root.is_object() ? root.value("chat_template", Json()) : Json();
    if (found.is_string()) return std::optional(found.get<std::string>());
    if (found.is_null()) return std::optional<std::string>();
    for (const auto& item : found.is_array() ? found : Json::array())
      if (item.value("name", std::string()) == "default") return std::optional(item.at("template").get<std::string>());
    return invalid_argument(
        path + ": key 'chat_template': neither a string nor a list of named ones with one named 'default'");
  } catch (const Json::exception& e) {
    return invalid_argument(path + " holds no chat_template that is understood: " + json_complaint(e));
  }
}

/// A special token as a JSON file states it: its text, null for none, nothing when the file does not say.
Result<std::optional<Json>> stated_token(const std::string& path, const std::string& name) {
  if (!std::filesystem::exists(path)) return std::optional<Json>();
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  const Result<Json> parsed = parse_json(file->bytes());
  if (!parsed.ok()) return invalid_argument(path + " " + parsed.error().message);
  if (!parsed->is_object() || !parsed->contains(name)) return std::optional<Json>();
  const Json& value = parsed->at(name);
  if (value.is_string() || value.is_null()) return std::optional(value);
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return std::optional<Json>(value["content"]);
  return invalid_argument(path + ": key '" + name + "': neither a string nor null nor an object with 'content'");
}

/// The special tokens that a template reads by name, as transformers hands them over: those that are null are absent.
Result<nlohmann::ordered_json> tokens_for(const jinja::Template& chat_template, const std::string& folder) {
  nlohmann::ordered_json tokens = nlohmann::ordered_json::object();
  const std::string config = folder + "/tokenizer_config.json", map = folder + "/special_tokens_map.json";
  for (const std::string& name : chat_template.names()) {
    static constexpr std::string_view kKnown[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                  "pad_token", "cls_token", "mask_token"};
    const bool known = std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
    const bool own = chat_template.assigned().count(name) > 0;
    if (!known && !own && (name.ends_with("_token") || name.ends_with("_tokens")))
      return invalid_argument("reads " + name + ", which is not known");
    if (!known) continue;
    TROUPE_ASSIGN(const std::optional<Json> token, stated_token(config, name));
    TROUPE_ASSIGN(const std::optional<Json> other, stated_token(map, name));
    if (!token) return invalid_argument("reads " + name + ", which " + config + " does not state");
    if (other && *other != *token)
      return invalid_argument("reads " + name + ", which is " + token->dump() + " in " + config + " and " +
                              other->dump() + " in " + map);
    if (!token->is_null()) tokens[name] = token->get<std::string>();
  }
  return tokens;
}

/// As default_system_of, for a template's text.
Result<std::optional<std::string>> judged(const std::string& text, const std::string& folder) {
  if (const size_t at = first_invalid_utf8(text); at != std::string::npos)
    return invalid_argument("is not UTF-8 at byte " + std::to_string(at));
  const auto parsed = jinja::Template::parse(text);
  if (!parsed.ok())
    return invalid_argument(
        (parsed.error().code == ErrorCode::kUnimplemented ? "has what is not understood: " : "cannot be read: ") +
        parsed.error().message);
  TROUPE_ASSIGN(const nlohmann::ordered_json tokens, tokens_for(*parsed, folder));
  return default_system_of(*parsed, tokens);
}

}  // namespace

Result<ChatTemplate> read_chat_template(const std::string& folder) {
  std::optional<std::string> text;
  ChatTemplate result;
  const std::string jinja = folder + "/chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    TROUPE_ASSIGN(const auto file, MappedFile::open(jinja));
    text = std::string(file->bytes());
    result.source = jinja;
  }
  for (const char* name : {"/chat_template.json", "/tokenizer_config.json"}) {
    if (text) break;
    TROUPE_ASSIGN(text, template_in_json(folder + name));
    if (text) result.source = folder + name;
  }
  if (!text) return result;
  const auto system = judged(*text, folder);
  if (!system.ok())
    return invalid_argument(result.source + (result.source == jinja ? "" : ": key 'chat_template'") +
                            ": the chat template " + system.error().message + kValid);
  result.default_system = *system;
  result.hash = XXH3_64bits(text->data(), text->size());
  return result;
}

}  // namespace troupe
