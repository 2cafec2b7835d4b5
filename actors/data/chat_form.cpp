#include "actors/data/chat_form.h"

#include <xxhash.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "base/mapped_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

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
    for (const auto& item : found.is_array() ? found : Json::array())
      if (item.value("name", std::string()) == "default") return std::optional(item.at("template").get<std::string>());
  } catch (const Json::exception& e) {
    return invalid_argument(path + " holds no chat_template that is understood: " + json_complaint(e));
  }
  return std::optional<std::string>();
}

/// The words between "<|im_start|>system" and "<|im_end|>" where the template states them literally (not as an
/// expression).
std::optional<std::string> stated_system(const std::string& text) {
  constexpr std::string_view kOpen = "<|im_start|>system", kClose = "<|im_end|>";
  for (size_t at = text.find(kOpen); at != std::string::npos; at = text.find(kOpen, at + 1)) {
    size_t begin = at + kOpen.size();
    if (text.compare(begin, 2, "\\n") == 0) {
      begin += 2;
    } else if (text.compare(begin, 1, "\n") == 0) {
      begin += 1;
    } else {
      continue;
    }
    const size_t end = text.find(kClose, begin);
    if (end == std::string::npos) continue;
    std::string words = text.substr(begin, end - begin);
    const bool expression = words.empty() || words.find_first_of("{}") != std::string::npos || words[0] == '\'' ||
                            words[0] == '"' || words.find("' +") != std::string::npos ||
                            words.find("\" +") != std::string::npos;
    if (!expression) return words;
  }
  return std::nullopt;
}

/// An id beyond the embedding, or a marker that the configuration and the tokenizer number differently, would train on
/// silently wrong rows.
Status check_ids(const Tokenizer& tokenizer, const ModelConfig& config) {
  if (tokenizer.largest_id() >= config.text.vocabulary)
    return invalid_argument(config.source + ": key 'vocab_size': value " + std::to_string(config.text.vocabulary) +
                            ", but " + tokenizer.file() + " has token id " + std::to_string(tokenizer.largest_id()) +
                            "; valid: at least " + std::to_string(tokenizer.largest_id() + 1));
  struct Marker {
    std::string spelling, key;
    int64_t configured;
  };
  for (const auto& [spelling, key, configured] :
       {Marker{"<|image_pad|>", "image_token_id", config.image_token},
        Marker{"<|vision_start|>", "vision_start_token_id", config.vision_start_token},
        Marker{"<|vision_end|>", "vision_end_token_id", config.vision_end_token}}) {
    TROUPE_ASSIGN(const int64_t id, tokenizer.id_of(spelling));
    if (id != configured)
      return invalid_argument(config.source + ": key '" + key + "': value " + std::to_string(configured) +
                              ", but token '" + spelling + "' of " + tokenizer.file() + " has id " +
                              std::to_string(id) + "; valid: " + std::to_string(id));
  }
  return {};
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
  if (text->find("<|im_start|>") == std::string::npos || text->find("<|im_end|>") == std::string::npos)
    return invalid_argument("the chat template in " + result.source +
                            " is not of the form <|im_start|>ROLE ... <|im_end|>, the only one that is understood");
  result.hash = XXH3_64bits(text->data(), text->size());
  if (auto system = stated_system(*text)) result.default_system = *system;
  return result;
}

int64_t SampleTokens::supervised_count() const {
  int64_t n = 0;
  for (size_t i = 1; i < supervised.size(); ++i) n += supervised[i];
  return n;
}

Result<std::unique_ptr<ChatForm>> ChatForm::create(std::shared_ptr<const Tokenizer> tokenizer,
                                                   const ChatTemplate& chat_template, const ModelConfig& config,
                                                   Supervise supervise) {
  std::unique_ptr<ChatForm> form(new ChatForm());
  TROUPE_ASSIGN(form->start_, tokenizer->id_of("<|im_start|>"));
  TROUPE_ASSIGN(form->end_, tokenizer->id_of("<|im_end|>"));
  TROUPE_RETURN_IF_ERROR(check_ids(*tokenizer, config));
  form->tokenizer_ = std::move(tokenizer);
  form->default_system_ = chat_template.default_system;
  form->supervise_ = supervise;
  form->vision_start_ = config.vision_start_token;
  form->vision_end_ = config.vision_end_token;
  form->image_ = config.image_token;
  form->merge_ = config.vision.merge_size;
  return form;
}

Result<SampleTokens> ChatForm::tokenize(const Record& record, std::vector<IndexedImage> images) const {
  SampleTokens out;
  out.images = std::move(images);
  size_t next_image = 0;
  if (record.turns.empty() || record.turns[0].role != Role::kSystem)
    TROUPE_RETURN_IF_ERROR(add_turn(Role::kSystem, default_system_, false, out, next_image));
  for (size_t i = 0; i < record.turns.size(); ++i) {
    const Turn& turn = record.turns[i];
    const bool supervise = turn.role == Role::kAssistant && !turn.text.empty() &&
                           (supervise_ == Supervise::kAll || i + 1 == record.turns.size());
    TROUPE_RETURN_IF_ERROR(add_turn(turn.role, turn.text, supervise, out, next_image));
  }
  if (next_image != out.images.size())
    return internal_error("the text has " + std::to_string(next_image) + " placeholders for " +
                          std::to_string(out.images.size()) + " images");
  return out;
}

Status ChatForm::add_turn(Role role, const std::string& text, bool supervise, SampleTokens& out,
                          size_t& next_image) const {
  out.ids.push_back(start_);
  // The role's line and the text are tokenized together, as the template's output is: a text that begins with a newline
  // merges with it.
  const std::string head = std::string(role_name(role)) + "\n";
  const size_t begin = out.ids.size();
  if (role == Role::kUser) {
    TROUPE_RETURN_IF_ERROR(add_user_text(head + text, out, next_image));
  } else {
    TROUPE_RETURN_IF_ERROR(tokenizer_->encode(head + text, out.ids));
  }
  out.ids.push_back(end_);
  const size_t after = out.ids.size();
  TROUPE_RETURN_IF_ERROR(tokenizer_->encode("\n", out.ids));
  out.supervised.resize(out.ids.size(), 0);
  if (!supervise) return {};
  size_t bytes = 0;
  for (size_t i = begin; i < after; ++i) {
    out.supervised[i] = bytes >= head.size();  // a token that began in the role's line is not the answer's
    bytes += tokenizer_->byte_length(out.ids[i]);
  }
  return {};
}

Status ChatForm::add_user_text(const std::string& text, SampleTokens& out, size_t& next_image) const {
  size_t done = 0;
  for (size_t at = text.find(kImagePlaceholder); at != std::string::npos; at = text.find(kImagePlaceholder, done)) {
    TROUPE_RETURN_IF_ERROR(tokenizer_->encode(std::string_view(text).substr(done, at - done), out.ids));
    if (next_image >= out.images.size())
      return internal_error("the text has more placeholders than the record has images");
    add_image(out, next_image);
    done = at + kImagePlaceholder.size();
  }
  return tokenizer_->encode(std::string_view(text).substr(done), out.ids);
}

void ChatForm::add_image(SampleTokens& out, size_t& next_image) const {
  IndexedImage& image = out.images[next_image++];
  out.ids.push_back(vision_start_);
  image.token_offset = static_cast<int32_t>(out.ids.size());
  out.ids.insert(out.ids.end(), static_cast<size_t>(image.tokens(merge_)), image_);
  out.ids.push_back(vision_end_);
}

bool truncate_text(SampleTokens& tokens, int64_t limit, int64_t merge) {
  if (static_cast<int64_t>(tokens.ids.size()) <= limit) return true;
  for (const auto& image : tokens.images)
    if (image.token_offset + image.tokens(merge) + 1 > limit) return false;  // with the vision end token behind it
  tokens.ids.resize(static_cast<size_t>(limit));
  tokens.supervised.resize(static_cast<size_t>(limit));
  return true;
}

}  // namespace troupe
