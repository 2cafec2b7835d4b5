#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/jinja/value.h"

namespace troupe::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;
struct Statement;
using Body = std::vector<std::unique_ptr<const Statement>>;

struct Expression {
  enum class Kind {
    kConstant,
    kName,
    kList,         // parts
    kTuple,        // parts
    kDict,         // parts: key, value, key, value
    kAttribute,    // parts[0].name
    kItem,         // parts[0][parts[1]]
    kSlice,        // parts[0][parts[1]:parts[2]:parts[3]], null where left out
    kCall,         // parts[0](parts[1], ..., named)
    kFilter,       // parts[0] | name(parts[1], ..., named)
    kTest,         // parts[0] is name(parts[1], ..., named)
    kNot,          // parts[0]
    kNegative,     // parts[0]
    kPositive,     // parts[0]
    kAnd,          // parts[0], parts[1]
    kOr,           // parts[0], parts[1]
    kConcat,       // parts, each as text
    kArithmetic,   // parts[0] name parts[1]
    kCompare,      // parts[0] operators[0] parts[1] operators[1] parts[2] ...
    kConditional,  // parts[1] if parts[0] else parts[2], which may be null
  };
  Kind kind = Kind::kConstant;
  int line = 0;
  int depth = 1;  // of the tree below, itself included
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;
};

/// What a set or a for assigns to: a name, several names in a tuple, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  bool tuple = false;
  std::string attribute;  // of names[0]; empty: none
};

struct MacroNode {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of each parameter, null where it has none
  Body body;
};

struct Statement {
  enum class Kind {
    kText,
    kOutput,      // value
    kIf,          // value, body, otherwise
    kFor,         // target in value if condition: body, else otherwise
    kSet,         // target = value
    kSetBlock,    // target = what body puts out
    kMacro,       // macro
    kGeneration,  // body, marked as an answer
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  int line = 0;
  std::string text;
  Target target;
  ExpressionPtr value, condition;
  Body body, otherwise;
  std::unique_ptr<const MacroNode> macro;
};

}  // namespace troupe::jinja
