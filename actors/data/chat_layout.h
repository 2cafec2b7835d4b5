#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/data/record.h"
#include "base/config/job_spec.h"

namespace troupe {

/// A part of a chat in the Qwen form, <|im_start|>ROLE, newline, text, <|im_end|>, newline, turn by turn: a control
/// token, an image or a video, or words that are tokenized together.
struct LayoutPart {
  static constexpr size_t kNothing = std::string::npos;
  enum class Kind { kTurnStart, kWords, kImage, kVideo, kTurnEnd } kind = Kind::kWords;
  std::string words;               // of kWords
  size_t learned_from = kNothing;  // its bytes from here on are learned; 0 for an end that is
  float weight = 1;                // of what is learned, in the loss
};

/// The parts of a chat: the turns, after `default_system` when there is one and the chat has no system turn. Learned
/// are answers that are not empty, with the ends of their turns, unless their weight is 0; with
/// Supervise::kLast only that of the last turn.
std::vector<LayoutPart> lay_out(const std::vector<Turn>& turns, const std::optional<std::string>& default_system,
                                Supervise supervise);

/// A chat as text, an image or a video as one pad between its marks.
struct ChatText {
  std::string text;
  std::vector<std::pair<size_t, size_t>> learned;  // [begin, end) in bytes of `text`, one an answer
};
ChatText as_text(const std::vector<LayoutPart>& parts);

}  // namespace troupe
