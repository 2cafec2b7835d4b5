#include "actors/data/chat_form.h"

#include <algorithm>

namespace troupe {
namespace {

/// A marker that the configuration and the tokenizer number differently would train on silently wrong rows.
Status check_marker(const Tokenizer& tokenizer, const ModelConfig& config, const std::string& spelling,
                    const std::string& key, int64_t configured) {
  TROUPE_ASSIGN(const int64_t id, tokenizer.id_of(spelling));
  if (id == configured) return {};
  return invalid_argument(config.source + ": key '" + key + "': value " + std::to_string(configured) + ", but token '" +
                          spelling + "' of " + tokenizer.file() + " has id " + std::to_string(id) +
                          "; valid: " + std::to_string(id));
}

/// An id beyond the embedding would too.
Status check_ids(const Tokenizer& tokenizer, const ModelConfig& config) {
  if (tokenizer.largest_id() >= config.text.vocabulary)
    return invalid_argument(config.source + ": key 'vocab_size': value " + std::to_string(config.text.vocabulary) +
                            ", but " + tokenizer.file() + " has token id " + std::to_string(tokenizer.largest_id()) +
                            "; valid: at least " + std::to_string(tokenizer.largest_id() + 1));
  TROUPE_RETURN_IF_ERROR(check_marker(tokenizer, config, "<|image_pad|>", "image_token_id", config.image_token));
  TROUPE_RETURN_IF_ERROR(
      check_marker(tokenizer, config, "<|vision_start|>", "vision_start_token_id", config.vision_start_token));
  return check_marker(tokenizer, config, "<|vision_end|>", "vision_end_token_id", config.vision_end_token);
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
  form->videos_ = check_marker(*tokenizer, config, "<|video_pad|>", "video_token_id", config.video_token);
  form->tokenizer_ = std::move(tokenizer);
  form->default_system_ = chat_template.default_system;
  form->supervise_ = supervise;
  form->vision_start_ = config.vision_start_token;
  form->vision_end_ = config.vision_end_token;
  form->image_ = config.image_token;
  form->video_ = config.video_token;
  form->merge_ = config.vision.merge_size;
  return form;
}

Result<SampleTokens> ChatForm::tokenize(const Record& record, std::vector<IndexedImage> images) const {
  SampleTokens out;
  out.images = std::move(images);
  size_t next_image = 0;
  for (const LayoutPart& part : lay_out(record.turns, default_system_, supervise_)) {
    switch (part.kind) {
      case LayoutPart::Kind::kTurnStart:
        out.ids.push_back(start_);
        break;
      case LayoutPart::Kind::kWords:
        TROUPE_RETURN_IF_ERROR(add_words(part, out));
        break;
      case LayoutPart::Kind::kImage:
      case LayoutPart::Kind::kVideo:
        TROUPE_RETURN_IF_ERROR(add_medium(part.kind == LayoutPart::Kind::kVideo, out, next_image));
        break;
      case LayoutPart::Kind::kTurnEnd:
        out.ids.push_back(end_);
        break;
    }
    out.supervised.resize(out.ids.size(), part.kind == LayoutPart::Kind::kTurnEnd && part.learned_from == 0);
    out.weights.resize(out.ids.size(), part.weight);
  }
  if (std::all_of(record.turns.begin(), record.turns.end(),
                  [](const Turn& turn) { return turn.weight == 1 || turn.weight == 0; }))
    out.weights.clear();
  if (next_image != out.images.size())
    return internal_error("the text has " + std::to_string(next_image) + " placeholders for " +
                          std::to_string(out.images.size()) + " images and videos");
  return out;
}

Status ChatForm::add_words(const LayoutPart& part, SampleTokens& out) const {
  const size_t begin = out.ids.size();
  TROUPE_RETURN_IF_ERROR(tokenizer_->encode(part.words, out.ids));
  out.supervised.resize(out.ids.size(), 0);
  size_t bytes = 0;
  for (size_t i = begin; i < out.ids.size() && part.learned_from != LayoutPart::kNothing; ++i) {
    out.supervised[i] = bytes >= part.learned_from;  // a token that began in the role's line is not the answer's
    bytes += tokenizer_->byte_length(out.ids[i]);
  }
  return {};
}

Status ChatForm::add_medium(bool video, SampleTokens& out, size_t& next) const {
  if (next >= out.images.size() || out.images[next].is_video() != video)
    return internal_error("the text's placeholders are not those of the record's images and videos");
  if (video) TROUPE_RETURN_IF_ERROR(videos_);
  IndexedImage& image = out.images[next++];
  out.ids.push_back(vision_start_);
  image.token_offset = static_cast<int32_t>(out.ids.size());
  out.ids.insert(out.ids.end(), static_cast<size_t>(image.tokens(merge_)), video ? video_ : image_);
  out.ids.push_back(vision_end_);
  return {};
}

bool truncate_text(SampleTokens& tokens, int64_t limit, int64_t merge) {
  if (static_cast<int64_t>(tokens.ids.size()) <= limit) return true;
  for (const auto& image : tokens.images)
    if (image.token_offset + image.tokens(merge) + 1 > limit) return false;  // with the vision end token behind it
  tokens.ids.resize(static_cast<size_t>(limit));
  tokens.supervised.resize(static_cast<size_t>(limit));
  if (!tokens.weights.empty()) tokens.weights.resize(static_cast<size_t>(limit));
  return true;
}

}  // namespace troupe
