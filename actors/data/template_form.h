#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/data/record.h"
#include "actors/jinja/template.h"
#include "base/result.h"

namespace troupe {

/// How a chat's contents are handed to a template; an image or a video stands in a list of parts only.
enum class Contents {
  kStrings,
  kQuestionParts,  // those of questions are lists of parts
  kQuestionCuts,   // the same, and longer texts come in two parts, as a file may have them
  kAllCuts,        // those of all turns
};

/// A model folder's chat template held against the Qwen form of chat_layout.h. Immutable but for set_default_system;
/// thread-safe.
class TemplateForm {
 public:
  /// `tokens`: an object with the special tokens that the template sees by name.
  TemplateForm(jinja::Template chat_template, nlohmann::ordered_json tokens)
      : template_(std::move(chat_template)), tokens_(std::move(tokens)) {}

  /// The system turn that is due in a chat without one; at first there is none.
  void set_default_system(std::optional<std::string> words) { default_ = std::move(words); }
  const std::optional<std::string>& default_system() const { return default_; }

  /// What it writes for the turns, and the opening of an answer behind them when that is asked for. InvalidArgument
  /// when it fails or has something that is not known; the message goes on from "the chat template" and names the chat
  /// as `what`.
  Result<jinja::Rendering> render(const std::vector<Turn>& turns, Contents contents, bool opens,
                                  const std::string& what) const;
  /// Whether it writes the turns as the form does, to the byte, and marks the answers that are learned, if it marks
  /// any. InvalidArgument, as above, with the first difference.
  /// `looked_at`: set as that of the rendering.
  Status check(const std::vector<Turn>& turns, Contents contents, const std::string& what,
               bool* looked_at = nullptr) const;

 private:
  jinja::Template template_;
  nlohmann::ordered_json tokens_;
  std::optional<std::string> default_;
};

/// Whether a question among the turns has an image or a video.
bool has_media(const std::vector<Turn>& turns);
/// Where two texts part, from a little before: "'...' where the form has '...'".
std::string difference(const std::string& got, const std::string& due);

}  // namespace troupe
