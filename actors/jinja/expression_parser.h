#pragma once

#include <set>
#include <string>

#include "actors/jinja/syntax.h"
#include "actors/jinja/token_stream.h"

namespace troupe::jinja {

/// Reads expressions with Jinja's precedence: conditional, or, and, not, comparison, + -, ~, * // %, unary, postfix,
/// filters and tests. `names` gets every name that is read.
class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, std::set<std::string>& names) : at_(tokens), names_(names) {}

  Result<ExpressionPtr> expression(bool conditional = true);
  /// One expression, or several with commas between, which are a tuple.
  Result<ExpressionPtr> tuple(bool conditional = true, bool in_parentheses = false);

 private:
  using Kind = Expression::Kind;
  using Node = std::unique_ptr<Expression>;

  Node make(Kind kind, int line) const;
  /// Takes `part` into `node`; an error when the tree gets too deep.
  Status add(const Node& node, ExpressionPtr part);
  Result<ExpressionPtr> pair_of(Kind kind, int line, ExpressionPtr left, ExpressionPtr right, std::string name = "");
  Result<ExpressionPtr> conditional();
  Result<ExpressionPtr> either();
  Result<ExpressionPtr> both();
  Result<ExpressionPtr> negation();
  Result<ExpressionPtr> comparison();
  Result<ExpressionPtr> sum();
  Result<ExpressionPtr> concatenation();
  Result<ExpressionPtr> product();
  Result<ExpressionPtr> unary(bool with_filters);
  Result<ExpressionPtr> primary();
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();
  Result<ExpressionPtr> postfix(ExpressionPtr node);
  Result<ExpressionPtr> filters(ExpressionPtr node);
  Result<ExpressionPtr> subscript(ExpressionPtr node);
  Result<ExpressionPtr> filter(ExpressionPtr node);
  Result<ExpressionPtr> test(ExpressionPtr node);
  Result<ExpressionPtr> call(ExpressionPtr node);
  Status arguments(const Node& node);

  TokenStream& at_;
  std::set<std::string>& names_;
  int depth_ = 0;
};

}  // namespace troupe::jinja
