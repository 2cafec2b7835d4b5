#pragma once

#include <set>
#include <string>
#include <vector>

#include "actors/jinja/lexer.h"
#include "actors/jinja/syntax.h"

namespace troupe::jinja {

struct Program {
  Body body;
  std::set<std::string> names;     // all that are read somewhere
  std::set<std::string> assigned;  // all that are set somewhere
  bool marks = false;              // whether a generation block stands somewhere
};

/// Nesting of statements and of expressions that is followed.
inline constexpr int kMaxDepth = 100;
/// Parameters of a macro, and arguments of a call.
inline constexpr size_t kMaxArguments = 100;

/// A template's statements. Errors name the line and what stands there: InvalidArgument for what Jinja refuses too,
/// Unimplemented for what is not known here.
Result<Program> parse(std::vector<Token> tokens);

}  // namespace troupe::jinja
