#include "actors/data/chat_template.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "actors/data/template_probes.h"
#include "actors/jinja/template.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/model/chat_template_files.h"
#include "base/utf8.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr const char* kValid =
    "; valid: a template that writes <|im_start|>ROLE, newline, text, <|im_end|>, newline, turn by turn";

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

/// A template's text as a form that has passed the probes.
Result<std::shared_ptr<const TemplateForm>> judged(const std::string& text, const std::string& folder) {
  if (const size_t at = first_invalid_utf8(text); at != std::string::npos)
    return invalid_argument("is not UTF-8 at byte " + std::to_string(at));
  const auto parsed = jinja::Template::parse(text);
  if (!parsed.ok())
    return invalid_argument(
        (parsed.error().code == ErrorCode::kUnimplemented ? "has what is not understood: " : "cannot be read: ") +
        parsed.error().message);
  TROUPE_ASSIGN(nlohmann::ordered_json tokens, tokens_for(*parsed, folder));
  auto form = std::make_shared<TemplateForm>(*parsed, std::move(tokens));
  TROUPE_RETURN_IF_ERROR(probe(*form));
  return std::shared_ptr<const TemplateForm>(std::move(form));
}

}  // namespace

Status ChatTemplate::check(const Record& record) const {
  if (shapes == nullptr) return {};
  const Status same = record.videos.empty() || videos.ok() ? shapes->check(record) : videos;
  return same.ok() ? same : invalid_argument("the chat template " + same.error().message);
}

Result<ChatTemplate> read_chat_template(const std::string& folder) {
  TROUPE_ASSIGN(const ChatTemplateFiles files, find_chat_templates(folder));
  ChatTemplate result;
  if (!files.taken) return result;
  result.source = files.taken->file;
  const std::string& text = files.taken->text;
  auto form = judged(text, folder);
  if (!form.ok())
    return invalid_argument(result.source + (files.taken->is_key ? ": key 'chat_template'" : "") +
                            ": the chat template " + form.error().message + kValid);
  result.default_system = (*form)->default_system();
  result.videos = probe_videos(**form);
  result.shapes = std::make_shared<const TemplateShapes>(std::move(*form));
  result.hash = XXH3_64bits(text.data(), text.size());
  return result;
}

}  // namespace troupe
