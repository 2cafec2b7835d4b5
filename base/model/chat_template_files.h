#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe {

/// A chat template as a file of a model folder holds it.
struct ChatTemplateText {
  std::string file;     // its path
  bool is_key = false;  // it is the key chat_template of a JSON file
  std::string text;
};

/// The chat templates of a model folder: the one that transformers' processor takes and the files whose template says
/// something else.
struct ChatTemplateFiles {
  std::optional<ChatTemplateText> taken;  // nothing: the folder has none
  std::vector<std::string> others;        // names in the folder

  /// What a person should know of them, or nothing.
  std::string warning() const;
};

/// Looks in processor_config.json, chat_template.json, chat_template.jinja and
/// additional_chat_templates/default.jinja, which is the order of transformers' processor, and then in
/// tokenizer_config.json, where its tokenizer looks last. Of several named ones "default" counts. InvalidArgument for
/// what transformers refuses: names the file and the reason.
Result<ChatTemplateFiles> find_chat_templates(const std::string& folder);

}  // namespace troupe
