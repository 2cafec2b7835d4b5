#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace troupe {

/// What a folder's chat template says where the Qwen form leaves it open.
struct ChatTemplate {
  /// The system turn of a record that has none; absent: such a record starts with its question.
  std::optional<std::string> default_system = "You are a helpful assistant.";
  std::string source;  // the file it was read from; empty: the folder has none and the default form is used
  uint64_t hash = 0;   // of the template's text
};

/// Looks for a template in chat_template.jinja, chat_template.json and tokenizer_config.json, and runs it on the chats
/// of template_probes.h. InvalidArgument when it writes one of them in another way than the Qwen form or cannot be run;
/// it names the file, the chat and where they differ, or the construct and its line.
Result<ChatTemplate> read_chat_template(const std::string& folder);

}  // namespace troupe
