#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// What a folder's chat template says, as far as the Qwen form leaves it open.
struct ChatTemplate {
  /// The system turn of a record that has none; absent: such a record starts with its question.
  std::optional<std::string> default_system = "You are a helpful assistant.";
  std::string source;  // the file it was read from; empty: the folder has none and the default form is used
  uint64_t hash = 0;   // of the template's text
};

/// Looks for a template in chat_template.jinja, chat_template.json and tokenizer_config.json. InvalidArgument when
/// there is one that would lay out turns in another way than the Qwen form; it names the file and what differs.
Result<ChatTemplate> read_chat_template(const std::string& folder);

/// The default system turn of a Jinja template whose output is the Qwen form. What the template puts out is read, not
/// run: literals, and the names of what is put between them. InvalidArgument says what is not of the form: text before
/// the first turn, a turn that opens or closes in another way, contents that are changed on their way, thoughts that
/// are added or cut, a default system turn that is computed or stated in two ways.
Result<std::optional<std::string>> default_system_of(std::string_view jinja);

}  // namespace troupe
