#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::jinja {

struct Token {
  enum class Kind {
    kText,
    kOutputBegin,
    kOutputEnd,
    kStatementBegin,
    kStatementEnd,
    kName,
    kString,
    kInteger,
    kOperator,
    kEnd
  };
  Kind kind = Kind::kEnd;
  std::string text;  // a string without its quotes and escapes
  int line = 1;
};

/// The tokens of a template, comments left out and blanks around tags taken away as trim_blocks, lstrip_blocks and the
/// marks in the tags say; kEnd is last. `source` is well-formed UTF-8. Errors name the line: InvalidArgument for what
/// Jinja refuses too, Unimplemented for what is not known here.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace troupe::jinja
