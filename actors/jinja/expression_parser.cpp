#include "actors/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "actors/jinja/names.h"
#include "actors/jinja/parser.h"

namespace troupe::jinja {

using Kind = Expression::Kind;
using TokenKind = Token::Kind;

ExpressionParser::Node ExpressionParser::make(Kind kind, int line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

Status ExpressionParser::add(const Node& node, ExpressionPtr part) {
  if (part != nullptr) node->depth = std::max(node->depth, part->depth + 1);
  node->parts.push_back(std::move(part));
  if (node->depth > kMaxDepth)
    return at_.unknown("an expression of more than " + std::to_string(kMaxDepth) + " levels");
  return {};
}

Result<ExpressionPtr> ExpressionParser::pair_of(Kind kind, int line, ExpressionPtr left, ExpressionPtr right,
                                                std::string name) {
  Node node = make(kind, line);
  node->name = std::move(name);
  TROUPE_RETURN_IF_ERROR(add(node, std::move(left)));
  TROUPE_RETURN_IF_ERROR(add(node, std::move(right)));
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::expression(bool with_conditional) {
  if (++depth_ > kMaxDepth) return at_.unknown("an expression of more than " + std::to_string(kMaxDepth) + " levels");
  auto result = with_conditional ? conditional() : either();
  --depth_;
  return result;
}

Result<ExpressionPtr> ExpressionParser::tuple(bool with_conditional, bool in_parentheses) {
  const int line = at_.line();
  Node node = make(Kind::kTuple, line);
  bool comma = false;
  const auto ends = [&] {
    return at_.is(TokenKind::kOutputEnd) || at_.is(TokenKind::kStatementEnd) || at_.is_operator(")");
  };
  while (!ends()) {
    TROUPE_ASSIGN(ExpressionPtr part, expression(with_conditional));
    TROUPE_RETURN_IF_ERROR(add(node, std::move(part)));
    if (!at_.skip_operator(",")) break;
    comma = true;
  }
  if (!comma && node->parts.size() == 1) return std::move(node->parts[0]);
  if (!comma && !in_parentheses) return at_.unexpected("an expression");
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::conditional() {
  int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr left, either());
  while (at_.skip_name("if")) {
    TROUPE_ASSIGN(ExpressionPtr condition, either());
    ExpressionPtr otherwise;
    if (at_.skip_name("else")) {
      TROUPE_ASSIGN(otherwise, expression());
    }
    Node node = make(Kind::kConditional, line);
    TROUPE_RETURN_IF_ERROR(add(node, std::move(condition)));
    TROUPE_RETURN_IF_ERROR(add(node, std::move(left)));
    TROUPE_RETURN_IF_ERROR(add(node, std::move(otherwise)));
    left = std::move(node);
    line = at_.line();
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::either() {
  const int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr left, both());
  while (at_.skip_name("or")) {
    TROUPE_ASSIGN(ExpressionPtr right, both());
    TROUPE_ASSIGN(left, pair_of(Kind::kOr, line, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::both() {
  const int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr left, negation());
  while (at_.skip_name("and")) {
    TROUPE_ASSIGN(ExpressionPtr right, negation());
    TROUPE_ASSIGN(left, pair_of(Kind::kAnd, line, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::negation() {
  const int line = at_.line();
  int times = 0;
  while (at_.skip_name("not")) ++times;
  TROUPE_ASSIGN(ExpressionPtr node, comparison());
  for (; times > 0; --times) {
    Node negated = make(Kind::kNot, line);
    TROUPE_RETURN_IF_ERROR(add(negated, std::move(node)));
    node = std::move(negated);
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::comparison() {
  static constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", "<=", ">", ">="};
  const int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr first, sum());
  Node node = make(Kind::kCompare, line);
  TROUPE_RETURN_IF_ERROR(add(node, std::move(first)));
  while (true) {
    std::string operation;
    if (at_.is(TokenKind::kOperator) && std::count(kOperators.begin(), kOperators.end(), at_.now().text) > 0) {
      operation = at_.now().text;
      at_.next();
    } else if (at_.skip_name("in")) {
      operation = "in";
    } else if (at_.is_name("not") && at_.behind().kind == TokenKind::kName && at_.behind().text == "in") {
      at_.next();
      at_.next();
      operation = "not in";
    } else {
      break;
    }
    TROUPE_ASSIGN(ExpressionPtr right, sum());
    node->operators.push_back(operation);
    TROUPE_RETURN_IF_ERROR(add(node, std::move(right)));
  }
  if (node->operators.empty()) return std::move(node->parts[0]);
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::sum() {
  const int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr left, concatenation());
  while (at_.is_operator("+") || at_.is_operator("-")) {
    const std::string operation = at_.now().text;
    at_.next();
    TROUPE_ASSIGN(ExpressionPtr right, concatenation());
    TROUPE_ASSIGN(left, pair_of(Kind::kArithmetic, line, std::move(left), std::move(right), operation));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::concatenation() {
  const int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr first, product());
  if (!at_.is_operator("~")) return first;
  Node node = make(Kind::kConcat, line);
  TROUPE_RETURN_IF_ERROR(add(node, std::move(first)));
  while (at_.skip_operator("~")) {
    TROUPE_ASSIGN(ExpressionPtr part, product());
    TROUPE_RETURN_IF_ERROR(add(node, std::move(part)));
  }
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::product() {
  const int line = at_.line();
  TROUPE_ASSIGN(ExpressionPtr left, unary(true));
  while (at_.is_operator("*") || at_.is_operator("//") || at_.is_operator("%") || at_.is_operator("/") ||
         at_.is_operator("**")) {
    const std::string operation = at_.now().text;
    if (operation == "/" || operation == "**") return at_.unknown("the operator " + operation);
    at_.next();
    TROUPE_ASSIGN(ExpressionPtr right, unary(true));
    TROUPE_ASSIGN(left, pair_of(Kind::kArithmetic, line, std::move(left), std::move(right), operation));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::unary(bool with_filters) {
  ExpressionPtr node;
  if (at_.is_operator("-") || at_.is_operator("+")) {
    Node sign = make(at_.is_operator("-") ? Kind::kNegative : Kind::kPositive, at_.line());
    at_.next();
    if (++depth_ > kMaxDepth) return at_.unknown("too many signs");
    TROUPE_ASSIGN(ExpressionPtr of, unary(false));
    --depth_;
    TROUPE_RETURN_IF_ERROR(add(sign, std::move(of)));
    node = std::move(sign);
  } else {
    TROUPE_ASSIGN(node, primary());
  }
  TROUPE_ASSIGN(node, postfix(std::move(node)));
  return with_filters ? filters(std::move(node)) : Result<ExpressionPtr>(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::primary() {
  const Token token = at_.now();
  Node node = make(Kind::kConstant, token.line);
  if (token.kind == TokenKind::kName) {
    at_.next();
    if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
      node->constant = Value::boolean(token.text[0] == 't' || token.text[0] == 'T');
    } else if (token.text == "none" || token.text == "None") {
      node->constant = Value::none();
    } else {
      node->kind = Kind::kName;
      node->name = token.text;
      names_.insert(token.text);
    }
    return ExpressionPtr(std::move(node));
  }
  if (token.kind == TokenKind::kString) {
    std::string text;
    for (; at_.is(TokenKind::kString); at_.next()) text += at_.now().text;
    node->constant = Value::string(std::move(text));
    return ExpressionPtr(std::move(node));
  }
  if (token.kind == TokenKind::kInteger) {
    at_.next();
    int64_t number = 0;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
    node->constant = Value::integer(number);
    return ExpressionPtr(std::move(node));
  }
  if (at_.skip_operator("(")) {
    TROUPE_ASSIGN(ExpressionPtr inner, tuple(true, true));
    TROUPE_RETURN_IF_ERROR(at_.expect_operator(")"));
    return inner;
  }
  if (at_.skip_operator("[")) return list();
  if (at_.skip_operator("{")) return dict();
  return at_.unexpected("an expression");
}

Result<ExpressionPtr> ExpressionParser::list() {
  Node node = make(Kind::kList, at_.line());
  while (!at_.is_operator("]")) {
    TROUPE_ASSIGN(ExpressionPtr item, expression());
    TROUPE_RETURN_IF_ERROR(add(node, std::move(item)));
    if (!at_.skip_operator(",")) break;
  }
  TROUPE_RETURN_IF_ERROR(at_.expect_operator("]"));
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::dict() {
  Node node = make(Kind::kDict, at_.line());
  while (!at_.is_operator("}")) {
    TROUPE_ASSIGN(ExpressionPtr key, expression());
    TROUPE_RETURN_IF_ERROR(at_.expect_operator(":"));
    TROUPE_ASSIGN(ExpressionPtr value, expression());
    TROUPE_RETURN_IF_ERROR(add(node, std::move(key)));
    TROUPE_RETURN_IF_ERROR(add(node, std::move(value)));
    if (!at_.skip_operator(",")) break;
  }
  TROUPE_RETURN_IF_ERROR(at_.expect_operator("}"));
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::postfix(ExpressionPtr node) {
  while (at_.is_operator(".") || at_.is_operator("[") || at_.is_operator("(")) {
    TROUPE_ASSIGN(node, at_.is_operator("(") ? call(std::move(node)) : subscript(std::move(node)));
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::filters(ExpressionPtr node) {
  while (at_.is_operator("|") || at_.is_name("is") || at_.is_operator("(")) {
    TROUPE_ASSIGN(node, at_.is_operator("|")   ? filter(std::move(node))
                        : at_.is_operator("(") ? call(std::move(node))
                                               : test(std::move(node)));
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::subscript(ExpressionPtr of) {
  const int line = at_.line();
  if (at_.skip_operator(".")) {
    if (at_.is(TokenKind::kInteger)) {
      TROUPE_ASSIGN(ExpressionPtr index, primary());
      return pair_of(Kind::kItem, line, std::move(of), std::move(index));
    }
    Node node = make(Kind::kAttribute, line);
    TROUPE_ASSIGN(node->name, at_.expect_name());
    TROUPE_RETURN_IF_ERROR(add(node, std::move(of)));
    return ExpressionPtr(std::move(node));
  }
  at_.next();
  Node node = make(Kind::kItem, line);
  TROUPE_RETURN_IF_ERROR(add(node, std::move(of)));
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      if (!at_.skip_operator(":")) break;
      node->kind = Kind::kSlice;
    }
    ExpressionPtr part;
    if (!at_.is_operator(":") && !at_.is_operator("]")) {
      TROUPE_ASSIGN(part, expression());
    }
    TROUPE_RETURN_IF_ERROR(add(node, std::move(part)));
  }
  if (node->kind == Kind::kItem && node->parts[1] == nullptr) return at_.unexpected("an expression");
  if (at_.is_operator(",")) return at_.unknown("several values in brackets");
  TROUPE_RETURN_IF_ERROR(at_.expect_operator("]"));
  while (node->kind == Kind::kSlice && node->parts.size() < 4) node->parts.emplace_back();
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::filter(ExpressionPtr of) {
  at_.next();
  Node node = make(Kind::kFilter, at_.line());
  TROUPE_ASSIGN(node->name, at_.expect_name());
  if (!is_jinja_filter(node->name) || at_.is_operator(".")) return at_.unknown("the filter " + node->name);
  TROUPE_RETURN_IF_ERROR(add(node, std::move(of)));
  if (at_.is_operator("(")) TROUPE_RETURN_IF_ERROR(arguments(node));
  return ExpressionPtr(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::test(ExpressionPtr of) {
  const int line = at_.line();
  at_.next();
  const bool negated = at_.skip_name("not");
  Node node = make(Kind::kTest, line);
  TROUPE_ASSIGN(node->name, at_.expect_name());
  if (!is_jinja_test(node->name) || at_.is_operator(".")) return at_.unknown("the test " + node->name);
  TROUPE_RETURN_IF_ERROR(add(node, std::move(of)));
  const bool has_operand = at_.is(TokenKind::kName) || at_.is(TokenKind::kString) || at_.is(TokenKind::kInteger) ||
                           at_.is_operator("[") || at_.is_operator("{");
  if (at_.is_operator("(")) {
    TROUPE_RETURN_IF_ERROR(arguments(node));
  } else if (has_operand && !at_.is_name("else") && !at_.is_name("or") && !at_.is_name("and")) {
    if (at_.is_name("is")) return at_.unexpected("the end of the test");
    TROUPE_ASSIGN(ExpressionPtr operand, primary());
    TROUPE_ASSIGN(operand, postfix(std::move(operand)));
    TROUPE_RETURN_IF_ERROR(add(node, std::move(operand)));
  }
  if (!negated) return ExpressionPtr(std::move(node));
  Node turned = make(Kind::kNot, line);
  TROUPE_RETURN_IF_ERROR(add(turned, std::move(node)));
  return ExpressionPtr(std::move(turned));
}

Result<ExpressionPtr> ExpressionParser::call(ExpressionPtr of) {
  Node node = make(Kind::kCall, at_.line());
  TROUPE_RETURN_IF_ERROR(add(node, std::move(of)));
  TROUPE_RETURN_IF_ERROR(arguments(node));
  return ExpressionPtr(std::move(node));
}

Status ExpressionParser::arguments(const Node& node) {
  at_.next();
  while (!at_.is_operator(")")) {
    if (at_.is_operator("*") || at_.is_operator("**")) return at_.unknown("arguments with " + at_.now().text);
    const bool is_named =
        at_.is(TokenKind::kName) && at_.behind().kind == TokenKind::kOperator && at_.behind().text == "=";
    if (node->parts.size() + node->named.size() > kMaxArguments) return at_.unknown("so many arguments");
    if (!is_named && !node->named.empty()) return at_.unexpected("a named argument");
    std::string name;
    if (is_named) {
      name = at_.now().text;
      at_.next();
      at_.next();
    }
    TROUPE_ASSIGN(ExpressionPtr value, expression());
    node->depth = std::max(node->depth, value->depth + 1);
    if (is_named) {
      node->named.emplace_back(std::move(name), std::move(value));
    } else {
      TROUPE_RETURN_IF_ERROR(add(node, std::move(value)));
    }
    if (!at_.skip_operator(",")) break;
  }
  if (node->depth > kMaxDepth) return at_.unknown("an expression of too many levels");
  return at_.expect_operator(")");
}

}  // namespace troupe::jinja
