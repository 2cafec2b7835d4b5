#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/jinja/budget.h"
#include "actors/jinja/calls.h"
#include "actors/jinja/parser.h"
#include "actors/jinja/template.h"

namespace troupe::jinja {

/// One rendering of a template. Used once, by one thread.
class Evaluator {
 public:
  Evaluator(const Program& program, const nlohmann::ordered_json& variables);
  Result<Rendering> run();

 private:
  enum class Flow { kOn, kBreak, kContinue };
  /// Names that a block sets; what it does not have is looked for further out.
  struct Scope {
    std::map<std::string, Value> names;
    Scope* outer = nullptr;
  };
  /// Enters a scope, and leaves it at the end of the block.
  class Inner {
   public:
    Inner(Evaluator& owner, Scope* outer) : owner_(owner), before_(owner.scope_) {
      scope_.outer = outer;
      owner_.scope_ = &scope_;
    }
    ~Inner() { owner_.scope_ = before_; }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;
    std::map<std::string, Value>& names() { return scope_.names; }

   private:
    Evaluator& owner_;
    Scope* before_;
    Scope scope_;
  };

  Result<Flow> run_body(const Body& body);
  Result<Flow> run_statement(const Statement& statement);
  Result<Flow> run_if(const Statement& statement);
  Result<Flow> run_loop(const Statement& statement);
  Result<Items> loop_items(const Statement& statement);
  Status put_out(const std::string& text);
  Status put_out(const Value& value);
  Result<Flow> mark(const Statement& statement);
  /// What a body writes, as a string.
  Result<Value> captured(const Body& body, Scope& scope);
  Status assign(const Target& target, const Value& value, std::map<std::string, Value>& names);

  /// The value; errors get the expression's line in front.
  Result<Value> evaluate(const Expression& expression);
  Result<Value> value_of(const Expression& expression);
  Result<Value> look_up(const std::string& name);
  Result<Value> sequence_of(const Expression& expression);
  Result<Value> dict_of(const Expression& expression);
  Result<Value> slice_of(const Expression& expression);
  Result<Value> choice(const Expression& expression);
  Result<Value> concatenated(const Expression& expression);
  Result<Value> comparison(const Expression& expression);
  Result<Value> signed_number(const Expression& expression);
  Result<Value> attribute_of(const Expression& expression);
  Result<Value> filtered(const Expression& expression);
  Result<Value> call(const Expression& expression);
  Result<Value> call_macro(const MacroNode& macro, const Arguments& given);
  Result<Arguments> arguments(const Expression& expression);
  /// Unimplemented when a value that was just made is too deep or holds what it must not.
  static Status check(const Value& value);

  const Program& program_;
  std::map<std::string, Value> context_;
  Scope top_;
  Scope* scope_ = &top_;
  Rendering rendering_;
  std::string* out_ = &rendering_.text;
  bool* out_looked_at_ = nullptr;  // of the watched strings that went there
  Budget budget_;
  int depth_ = 0;
  bool in_condition_ = false;  // of a for
};

}  // namespace troupe::jinja
