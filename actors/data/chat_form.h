#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/data/chat_layout.h"
#include "actors/data/chat_template.h"
#include "actors/data/record.h"
#include "actors/data/tokenizer.h"
#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"
#include "base/result.h"

namespace troupe {

/// A sample's tokens. ids [S]; supervised [S] as in TokenizedSample; images: grids and token offsets.
struct SampleTokens {
  std::vector<int64_t> ids;
  std::vector<uint8_t> supervised;
  std::vector<float> weights;  // [S] what a supervised token counts in the loss; empty: 1 each
  std::vector<IndexedImage> images;
  /// Positions whose token is predicted, which is every supervised one but a first.
  int64_t supervised_count() const;
};

/// Lays a record out in the Qwen chat form and tokenizes it. Thread-safe.
class ChatForm {
 public:
  /// NotFound when the tokenizer lacks one of the form's control tokens. InvalidArgument when it has an id beyond the
  /// configuration's vocabulary, or when the two number an image marker differently: names both files and both numbers.
  static Result<std::unique_ptr<ChatForm>> create(std::shared_ptr<const Tokenizer> tokenizer,
                                                  const ChatTemplate& chat_template, const ModelConfig& config,
                                                  Supervise supervise);
  /// `images`: the grids of the record's images and videos in reading order; their token offsets are filled in.
  /// NotFound or InvalidArgument when the record has a video and the tokenizer no mark for it, or one that the
  /// configuration numbers differently.
  Result<SampleTokens> tokenize(const Record& record, std::vector<IndexedImage> images) const;
  int64_t end_of_turn() const { return end_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  ChatForm() = default;
  Status add_words(const LayoutPart& part, SampleTokens& out) const;
  Status add_medium(bool video, SampleTokens& out, size_t& next) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<std::string> default_system_;
  Supervise supervise_ = Supervise::kAll;
  int64_t start_ = 0, end_ = 0, vision_start_ = 0, vision_end_ = 0, image_ = 0, video_ = 0, merge_ = 2;
  Status videos_;  // whether videos have a mark
};

/// Cuts a sample that is longer than `limit` down to its first `limit` tokens. False, and nothing changes, when an
/// image would be cut or lost.
bool truncate_text(SampleTokens& tokens, int64_t limit, int64_t merge);

}  // namespace troupe
