#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/config/yaml_tree.h"

/// Variables of the environment in values of YAML files: `${NAME}`.
namespace troupe {

/// Names to values: what `${NAME}` is taken from.
using Environment = std::map<std::string, std::string>;
/// The environment of this process; the one place of the tree that reads it.
Environment process_environment();

/// `${NAME}` in a text: where it begins, and how many bytes it has.
struct VariablePlace {
  size_t at = 0, length = 0;
};
/// The first hundred of a text, in order.
std::vector<VariablePlace> variables_in(const std::string& text);

/// Replaces `${NAME}` in all scalars ("$${" stands for "${"). A quoted scalar that is one variable
/// and nothing else counts as unquoted: flow mappings cannot hold the braces otherwise. An undefined variable goes to
/// `diagnostics`, under the dotted name of its key, and ends what is said of that key.
void expand_variables(YamlNode& node, const Environment& environment, Diagnostics& diagnostics);

}  // namespace troupe
