#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/data/record.h"
#include "actors/data/template_shapes.h"
#include "base/result.h"

namespace troupe {

/// What a folder's chat template says where the Qwen form leaves it open.
struct ChatTemplate {
  /// The system turn of a record that has none; absent: such a record starts with its question.
  std::optional<std::string> default_system = "You are a helpful assistant.";
  std::string source;  // the file it was read from; empty: the folder has none and the default form is used
  uint64_t hash = 0;   // of the template's text
  std::shared_ptr<const TemplateShapes> shapes;  // of the template; null: the folder has none
  Status videos;                                 // whether it writes chats with videos as the form does

  /// Whether the template, where the folder has one, writes a record's turns as the form does. InvalidArgument with the
  /// first difference. Thread-safe. Cost: as TemplateShapes says.
  Status check(const Record& record) const;
};

/// Takes the template that find_chat_templates finds, and runs it on the chats of template_probes.h. InvalidArgument
/// when it writes one of them in another way than the Qwen form or cannot be run; it names the file, the chat and where
/// they differ, or the construct and its line.
Result<ChatTemplate> read_chat_template(const std::string& folder);

}  // namespace troupe
