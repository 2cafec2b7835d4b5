#include "actors/data/chat_form.h"

namespace troupe {
namespace {

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
  if (default_system_ && (record.turns.empty() || record.turns[0].role != Role::kSystem))
    TROUPE_RETURN_IF_ERROR(add_turn(Role::kSystem, *default_system_, false, out, next_image));
  for (size_t i = 0; i < record.turns.size(); ++i) {
    const Turn& turn = record.turns[i];
    const bool supervise = turn.role == Role::kAssistant && turn.trained && !turn.text.empty() &&
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
