#pragma once

#include <string>

#include "base/convert/foreign_config.h"

namespace troupe::convert {

/// A script with one training command (`swift sft --key value ...`, `llamafactory-cli train --key value ...`) as a
/// configuration: its arguments, and the variables that it sets for the command. A flag without a value is `true`,
/// several values are a list. Other commands that could change what is trained are refused with their line.
Result<ForeignConfig> read_shell_config(const std::string& text, const std::string& file);

/// Whether a text has such a command at all.
bool looks_like_shell(const std::string& text);

}  // namespace troupe::convert
