#include "actors/jinja/evaluator.h"

#include <algorithm>

#include "actors/jinja/names.h"
#include "actors/jinja/operations.h"
#include "actors/jinja/text.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

constexpr int kMaxRunDepth = 400;  // of statements, expressions and macros in each other

Error at_line(int line, Error error) {
  if (!error.message.starts_with("line ")) error.message = "line " + std::to_string(line) + ": " + error.message;
  return error;
}

}  // namespace

Evaluator::Evaluator(const Program& program, const nlohmann::ordered_json& variables)
    : program_(program), budget_(weight_of(variables)) {
  for (const auto& [name, value] : variables.items()) context_[name] = Value::from_json(value, &rendering_.looked_at);
}

Result<Rendering> Evaluator::run() {
  TROUPE_ASSIGN(const Flow flow, run_body(program_.body));
  static_cast<void>(flow);
  return std::move(rendering_);
}

Status Evaluator::put_out(const std::string& text) {
  TROUPE_RETURN_IF_ERROR(budget_.bytes(text.size()));
  *out_ += text;
  return {};
}

Status Evaluator::put_out(const Value& value) {
  if (value.looked_at() != nullptr) out_looked_at_ = value.looked_at();
  if (value.is(Kind::kString)) return put_out(value.unseen_text());
  TROUPE_ASSIGN(const std::string text, to_text(value, budget_));
  return put_out(text);
}

Result<Evaluator::Flow> Evaluator::run_body(const Body& body) {
  for (const auto& statement : body) {
    if (Status granted = budget_.steps(1); !granted.ok()) return at_line(statement->line, granted.error());
    if (++depth_ > kMaxRunDepth) return at_line(statement->line, not_known("blocks and macros nested that deep"));
    Result<Flow> flow = run_statement(*statement);
    --depth_;
    if (!flow.ok()) return at_line(statement->line, flow.error());
    if (*flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Result<Evaluator::Flow> Evaluator::run_statement(const Statement& statement) {
  switch (statement.kind) {
    case Statement::Kind::kText:
      TROUPE_RETURN_IF_ERROR(put_out(statement.text));
      return Flow::kOn;
    case Statement::Kind::kOutput: {
      TROUPE_ASSIGN(const Value value, evaluate(*statement.value));
      TROUPE_RETURN_IF_ERROR(put_out(value));
      return Flow::kOn;
    }
    case Statement::Kind::kIf:
      return run_if(statement);
    case Statement::Kind::kFor:
      return run_loop(statement);
    case Statement::Kind::kSet: {
      TROUPE_ASSIGN(const Value value, evaluate(*statement.value));
      TROUPE_RETURN_IF_ERROR(assign(statement.target, value, scope_->names));
      return Flow::kOn;
    }
    case Statement::Kind::kSetBlock: {
      Scope inner{{}, scope_};
      TROUPE_ASSIGN(const Value text, captured(statement.body, inner));
      TROUPE_RETURN_IF_ERROR(assign(statement.target, text, scope_->names));
      return Flow::kOn;
    }
    case Statement::Kind::kMacro:
      scope_->names[statement.macro->name] = Value::macro(statement.macro.get());
      return Flow::kOn;
    case Statement::Kind::kGeneration:
      return mark(statement);
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kOn;
}

Result<Evaluator::Flow> Evaluator::run_if(const Statement& statement) {
  TROUPE_ASSIGN(const Value condition, evaluate(*statement.value));
  return run_body(condition.truth() ? statement.body : statement.otherwise);
}

Result<Items> Evaluator::loop_items(const Statement& statement) {
  TROUPE_ASSIGN(const Value all, evaluate(*statement.value));
  TROUPE_ASSIGN(Items items, iterate(all, budget_));
  if (statement.condition == nullptr) return items;
  Items kept;
  for (const Value& one : items) {
    TROUPE_RETURN_IF_ERROR(budget_.steps(2));
    Inner scope(*this, scope_);
    TROUPE_RETURN_IF_ERROR(assign(statement.target, one, scope.names()));
    // Jinja judges an item just before its turn, when the body may have changed a namespace.
    const bool outside = std::exchange(in_condition_, true);
    auto fits = evaluate(*statement.condition);
    in_condition_ = outside;
    if (!fits.ok()) return fits.error();
    if (fits->truth()) kept.push_back(one);
  }
  return kept;
}

Result<Evaluator::Flow> Evaluator::run_loop(const Statement& statement) {
  TROUPE_ASSIGN(const Items items, loop_items(statement));
  bool completed = false;  // any pass, which is what Jinja's else goes by
  for (size_t i = 0; i < items.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(budget_.steps(4));
    Inner scope(*this, scope_);
    auto position = std::make_shared<LoopPosition>();
    position->index0 = static_cast<int64_t>(i);
    position->length = static_cast<int64_t>(items.size());
    position->previous = i > 0 ? items[i - 1] : Value::undefined("loop.previtem");
    position->next = i + 1 < items.size() ? items[i + 1] : Value::undefined("loop.nextitem");
    scope.names()["loop"] = Value::loop(std::move(position));
    TROUPE_RETURN_IF_ERROR(assign(statement.target, items[i], scope.names()));
    TROUPE_ASSIGN(const Flow flow, run_body(statement.body));
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kOn;
  }
  if (completed) return Flow::kOn;
  Inner scope(*this, scope_);
  return run_body(statement.otherwise);
}

Result<Evaluator::Flow> Evaluator::mark(const Statement& statement) {
  if (out_ != &rendering_.text) return not_known("a generation block inside a macro or a set block");
  const size_t begin = rendering_.text.size();
  Inner scope(*this, scope_);
  TROUPE_ASSIGN(const Flow flow, run_body(statement.body));
  rendering_.marked.emplace_back(begin, rendering_.text.size());
  return flow;
}

Result<Value> Evaluator::captured(const Body& body, Scope& inner) {
  std::string text;
  std::string* const out = std::exchange(out_, &text);
  bool* const looked_at = std::exchange(out_looked_at_, nullptr);
  Scope* const before = std::exchange(scope_, &inner);
  const auto flow = run_body(body);
  out_ = out;
  scope_ = before;
  bool* const inside = std::exchange(out_looked_at_, looked_at);
  if (!flow.ok()) return flow.error();
  return Value::watched(std::move(text), inside);
}

Status Evaluator::assign(const Target& target, const Value& value, std::map<std::string, Value>& names) {
  if (!target.attribute.empty()) {
    TROUPE_ASSIGN(const Value space, look_up(target.names[0]));
    if (!space.is(Kind::kNamespace))
      return fails("sets " + target.names[0] + "." + target.attribute + " of no namespace");
    if (target.attribute.starts_with("_")) return fails("sets " + target.attribute + " of a namespace");
    if (value.refers()) return not_known("a namespace inside another value");
    space.space().names[target.attribute] = value;
    return {};
  }
  if (!target.tuple) {
    names[target.names[0]] = value;
    return {};
  }
  TROUPE_ASSIGN(const Items items, iterate(value, budget_));
  if (items.size() != target.names.size())
    return fails("takes apart " + std::to_string(items.size()) + " values into " + std::to_string(target.names.size()));
  for (size_t i = 0; i < items.size(); ++i) names[target.names[i]] = items[i];
  return {};
}

Status Evaluator::check(const Value& value) {
  if (value.depth() == 0) return {};
  if (value.refers()) return not_known("a namespace inside another value");
  if (value.depth() > kMaxDepth) return not_known("a value of more than " + std::to_string(kMaxDepth) + " levels");
  return {};
}

Result<Value> Evaluator::evaluate(const Expression& expression) {
  if (++depth_ > kMaxRunDepth) return at_line(expression.line, not_known("blocks and macros nested that deep"));
  if (Status granted = budget_.steps(1); !granted.ok()) return at_line(expression.line, granted.error());
  Result<Value> value = value_of(expression);
  --depth_;
  if (!value.ok()) return at_line(expression.line, value.error());
  if (Status fine = check(*value); !fine.ok()) return at_line(expression.line, fine.error());
  return value;
}

Result<Value> Evaluator::value_of(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kConstant:
      return expression.constant;
    case Expression::Kind::kName:
      return look_up(expression.name);
    case Expression::Kind::kList:
    case Expression::Kind::kTuple:
      return sequence_of(expression);
    case Expression::Kind::kDict:
      return dict_of(expression);
    case Expression::Kind::kAttribute:
    case Expression::Kind::kItem:
      return attribute_of(expression);
    case Expression::Kind::kSlice:
      return slice_of(expression);
    case Expression::Kind::kCall:
      return call(expression);
    case Expression::Kind::kFilter:
    case Expression::Kind::kTest:
      return filtered(expression);
    case Expression::Kind::kNot:
    case Expression::Kind::kAnd:
    case Expression::Kind::kOr:
    case Expression::Kind::kConditional:
      return choice(expression);
    case Expression::Kind::kNegative:
    case Expression::Kind::kPositive:
      return signed_number(expression);
    case Expression::Kind::kConcat:
      return concatenated(expression);
    case Expression::Kind::kArithmetic: {
      TROUPE_ASSIGN(const Value left, evaluate(*expression.parts[0]));
      TROUPE_ASSIGN(const Value right, evaluate(*expression.parts[1]));
      return arithmetic(expression.name, left, right, budget_);
    }
    case Expression::Kind::kCompare:
      return comparison(expression);
  }
  return not_known("such an expression");
}

Result<Value> Evaluator::look_up(const std::string& name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
    TROUPE_RETURN_IF_ERROR(budget_.bytes(16));
    if (const auto found = scope->names.find(name); found != scope->names.end()) {
      if (in_condition_ && name == "loop") return not_known("loop in a loop's own condition");
      return found->second;
    }
  }
  if (const auto found = context_.find(name); found != context_.end()) return found->second;
  if (is_jinja_function(name)) return Value::function(name);
  if (name == "self" || name == "super") return not_known("the name " + name);
  return Value::undefined(name);
}

Result<Value> Evaluator::sequence_of(const Expression& expression) {
  TROUPE_RETURN_IF_ERROR(budget_.items(expression.parts.size()));
  Items items;
  for (const auto& part : expression.parts) {
    TROUPE_ASSIGN(Value item, evaluate(*part));
    items.push_back(std::move(item));
  }
  return Value::sequence(expression.kind == Expression::Kind::kList ? Kind::kList : Kind::kTuple, std::move(items));
}

Result<Value> Evaluator::dict_of(const Expression& expression) {
  TROUPE_RETURN_IF_ERROR(budget_.items(expression.parts.size()));
  Entries entries;
  for (size_t i = 0; i < expression.parts.size(); i += 2) {
    TROUPE_ASSIGN(const Value key, evaluate(*expression.parts[i]));
    TROUPE_ASSIGN(const Value value, evaluate(*expression.parts[i + 1]));
    if (!key.is(Kind::kString)) return not_known(std::string("a dict's key that is ") + key.kind_name());
    TROUPE_ASSIGN(const Value* known, find(entries, key, budget_));
    if (known != nullptr) return not_known("a dict that has a key twice");
    entries.emplace_back(key, value);
  }
  return Value::dict(std::move(entries));
}

Result<Value> Evaluator::slice_of(const Expression& expression) {
  TROUPE_ASSIGN(const Value of, evaluate(*expression.parts[0]));
  std::optional<int64_t> bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (expression.parts[i + 1] == nullptr) continue;
    TROUPE_ASSIGN(const Value bound, evaluate(*expression.parts[i + 1]));
    if (bound.is(Kind::kNone)) continue;
    if (!bound.is_number()) return fails(std::string("cuts at ") + bound.kind_name());
    bounds[i] = bound.number();
  }
  return slice(of, bounds[0], bounds[1], bounds[2].value_or(1), budget_);
}

Result<Value> Evaluator::choice(const Expression& expression) {
  TROUPE_ASSIGN(const Value first, evaluate(*expression.parts[0]));
  if (expression.kind == Expression::Kind::kNot) return Value::boolean(!first.truth());
  if (expression.kind == Expression::Kind::kAnd) return first.truth() ? evaluate(*expression.parts[1]) : first;
  if (expression.kind == Expression::Kind::kOr) return first.truth() ? first : evaluate(*expression.parts[1]);
  if (first.truth()) return evaluate(*expression.parts[1]);
  if (expression.parts[2] == nullptr) return Value::undefined("an if without else");
  return evaluate(*expression.parts[2]);
}

Result<Value> Evaluator::concatenated(const Expression& expression) {
  std::string out;
  bool* looked_at = nullptr;
  for (const auto& part : expression.parts) {
    TROUPE_ASSIGN(const Value value, evaluate(*part));
    if (value.looked_at() != nullptr) looked_at = value.looked_at();
    if (value.is(Kind::kString)) {
      TROUPE_RETURN_IF_ERROR(budget_.text(value.unseen_text().size()));
      out += value.unseen_text();
    } else {
      TROUPE_ASSIGN(const std::string text, to_text(value, budget_));
      out += text;
    }
  }
  return Value::watched(std::move(out), looked_at);
}

Result<Value> Evaluator::comparison(const Expression& expression) {
  TROUPE_ASSIGN(Value left, evaluate(*expression.parts[0]));
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    TROUPE_ASSIGN(Value right, evaluate(*expression.parts[i + 1]));
    TROUPE_ASSIGN(const bool holds, compare(expression.operators[i], left, right, budget_));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Evaluator::signed_number(const Expression& expression) {
  TROUPE_ASSIGN(const Value of, evaluate(*expression.parts[0]));
  if (!of.is_number()) return fails(std::string("puts a sign before ") + of.kind_name());
  const Value zero = Value::integer(0);
  return arithmetic(expression.kind == Expression::Kind::kNegative ? "-" : "+", zero, of, budget_);
}

Result<Value> Evaluator::attribute_of(const Expression& expression) {
  TROUPE_ASSIGN(const Value of, evaluate(*expression.parts[0]));
  if (in_condition_ && of.is(Kind::kNamespace)) return not_known("a loop's condition that reads a namespace");
  if (expression.kind == Expression::Kind::kAttribute) return attribute(of, expression.name, budget_);
  TROUPE_ASSIGN(const Value key, evaluate(*expression.parts[1]));
  return item(of, key, budget_);
}

Result<Arguments> Evaluator::arguments(const Expression& expression) {
  Arguments given;
  for (size_t i = 1; i < expression.parts.size(); ++i) {
    TROUPE_ASSIGN(Value value, evaluate(*expression.parts[i]));
    given.positional.push_back(std::move(value));
  }
  for (const auto& [name, part] : expression.named) {
    for (const auto& [known, value] : given.named)
      if (known == name) return fails("gives the argument " + name + " twice");
    TROUPE_ASSIGN(Value value, evaluate(*part));
    given.named.emplace_back(name, std::move(value));
  }
  return given;
}

Result<Value> Evaluator::filtered(const Expression& expression) {
  TROUPE_ASSIGN(const Value of, evaluate(*expression.parts[0]));
  TROUPE_ASSIGN(const Arguments given, arguments(expression));
  if (expression.kind == Expression::Kind::kFilter) return apply_filter(expression.name, of, given, budget_);
  TROUPE_ASSIGN(const bool holds, apply_test(expression.name, of, given, budget_));
  return Value::boolean(holds);
}

Result<Value> Evaluator::call(const Expression& expression) {
  TROUPE_ASSIGN(const Value callee, evaluate(*expression.parts[0]));
  TROUPE_ASSIGN(const Arguments given, arguments(expression));
  switch (callee.kind()) {
    case Kind::kMacro:
      return call_macro(callee.macro_node(), given);
    case Kind::kMethod:
      return call_method(callee.bound(), callee.text(), given, budget_);
    case Kind::kFunction:
      for (const auto& [name, value] : given.named)
        if (value.refers()) return not_known("a namespace inside another value");
      return call_function(callee.text(), given, budget_);
    case Kind::kUndefined:
      return fails("calls " + shown(callee.text()) + ", which is undefined");
    default:
      return fails(std::string("calls ") + callee.kind_name());
  }
}

Result<Value> Evaluator::call_macro(const MacroNode& macro, const Arguments& given) {
  if (in_condition_) return not_known("a macro in a loop's condition");
  if (given.positional.size() > macro.parameters.size())
    return fails("calls " + macro.name + " with too many arguments");
  for (const auto& [name, value] : given.named) {
    const auto at = std::find(macro.parameters.begin(), macro.parameters.end(), name) - macro.parameters.begin();
    if (static_cast<size_t>(at) == macro.parameters.size() || static_cast<size_t>(at) < given.positional.size())
      return fails("calls " + macro.name + " with the argument " + name);
  }
  TROUPE_RETURN_IF_ERROR(budget_.steps(2 + macro.parameters.size() * (1 + given.named.size() / 16)));
  Scope inner{{}, &top_};
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const std::string& name = macro.parameters[i];
    if (const Value* value = given.get(i, name)) {
      inner.names[name] = *value;
    } else if (macro.defaults[i] == nullptr) {
      inner.names[name] = Value::undefined(name);
    } else {
      Scope* const before = std::exchange(scope_, &inner);
      auto value_or = evaluate(*macro.defaults[i]);
      scope_ = before;
      TROUPE_ASSIGN(inner.names[name], std::move(value_or));
    }
  }
  return captured(macro.body, inner);
}

}  // namespace troupe::jinja
