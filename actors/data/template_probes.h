#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "actors/jinja/template.h"
#include "base/result.h"

namespace troupe {

/// Runs a chat template on a fixed set of chats (with and without a system turn, one question and many, images in every
/// place, blanks, thoughts and markup in the texts, contents as strings and as lists of parts, with and without the
/// opening of an answer) and holds what it writes against the Qwen form of chat_layout.h, byte by byte, and what its
/// generation blocks mark against what is learned.
/// Returns the system turn that it adds to a chat without one, or nothing. `tokens`: an object with the special tokens
/// that the template sees by name. InvalidArgument with the first chat that is not written so, or with the construct
/// that is not known; the message goes on from "the chat template". Takes milliseconds.
Result<std::optional<std::string>> default_system_of(const jinja::Template& chat_template,
                                                     const nlohmann::ordered_json& tokens);

}  // namespace troupe
