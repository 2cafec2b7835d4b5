#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/config/diagnostics.h"

/// Shell scripts as far as training commands are written in them: words, quotes, continued lines, comments, variables
/// of the script itself and integer arithmetic. Nothing is run, and nothing of this process's environment is read.
namespace troupe::convert {

struct ShellWord {
  std::string text;  // quotes taken off, variables replaced
  int line = 0;
};

/// One command: NAME=VALUE in front of it (or alone), then its words.
struct ShellCommand {
  std::vector<std::pair<ShellWord, std::string>> assignments;  // the name with its line, the value
  std::vector<ShellWord> words;
};

/// The commands of a script in its order; what follows a redirection or a pipe up to the end of a line is left out.
/// Variables that the script does not set, and substitutions other than $(expr A OP B) and $((A OP B)), go to
/// `diagnostics`, and so does a quote that is not closed.
std::vector<ShellCommand> read_shell_commands(const std::string& text, const std::string& origin,
                                              Diagnostics& diagnostics);

}  // namespace troupe::convert
