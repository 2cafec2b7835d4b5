#include "actors/jinja/parser.h"

#include <algorithm>

#include "actors/jinja/expression_parser.h"
#include "actors/jinja/token_stream.h"

namespace troupe::jinja {
namespace {

using Kind = Statement::Kind;
using TokenKind = Token::Kind;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : at_(std::move(tokens)), expressions_(at_, program_.names) {}

  Result<Program> run() {
    TROUPE_ASSIGN(program_.body, statements({}));
    return std::move(program_);
  }

 private:
  using Node = std::unique_ptr<Statement>;

  Node make(Kind kind) const {
    auto node = std::make_unique<Statement>();
    node->kind = kind;
    node->line = at_.line();
    return node;
  }

  /// Up to a statement whose name is one of `ends`, which is not taken; with none, up to the end.
  Result<Body> statements(const std::vector<std::string>& ends) {
    if (++depth_ > kMaxDepth) return at_.unknown("statements of more than " + std::to_string(kMaxDepth) + " levels");
    Body body;
    while (true) {
      if (at_.is(TokenKind::kEnd)) {
        if (!ends.empty()) return at_.unexpected("'" + ends.back() + "'");
        break;
      }
      if (at_.is(TokenKind::kText)) {
        Node node = make(Kind::kText);
        node->text = at_.now().text;
        at_.next();
        body.push_back(std::move(node));
      } else if (at_.is(TokenKind::kOutputBegin)) {
        Node node = make(Kind::kOutput);
        at_.next();
        TROUPE_ASSIGN(node->value, expressions_.tuple());
        TROUPE_RETURN_IF_ERROR(at_.expect(TokenKind::kOutputEnd, "'}}'"));
        body.push_back(std::move(node));
      } else {
        at_.next();  // "{%": the lexer gives nothing else here
        if (at_.is(TokenKind::kName) && std::count(ends.begin(), ends.end(), at_.now().text) > 0) break;
        TROUPE_ASSIGN(Node node, statement());
        TROUPE_RETURN_IF_ERROR(at_.expect(TokenKind::kStatementEnd, "'%}'"));
        body.push_back(std::move(node));
      }
    }
    --depth_;
    return body;
  }

  /// The end of a tag, statements, and the tag's name that ends them, which is taken.
  Result<Body> block(const std::vector<std::string>& ends, std::string* ended_by = nullptr) {
    at_.skip_operator(":");
    TROUPE_RETURN_IF_ERROR(at_.expect(TokenKind::kStatementEnd, "'%}'"));
    TROUPE_ASSIGN(Body body, statements(ends));
    if (ended_by != nullptr) *ended_by = at_.now().text;
    at_.next();
    return body;
  }

  Result<Node> statement() {
    if (at_.skip_name("if")) return condition();
    if (at_.skip_name("for")) return loop();
    if (at_.skip_name("set")) return assignment();
    if (at_.skip_name("macro")) return macro();
    if (at_.is_name("break") || at_.is_name("continue")) {
      if (loops_ == 0) return at_.unexpected("a loop around it");
      Node node = make(at_.is_name("break") ? Kind::kBreak : Kind::kContinue);
      at_.next();
      return node;
    }
    if (at_.is_name("generation")) {
      Node node = make(Kind::kGeneration);
      at_.next();
      program_.marks = true;
      const int outside = std::exchange(loops_, 0);
      TROUPE_ASSIGN(node->body, block({"endgeneration"}));
      loops_ = outside;
      return node;
    }
    if (!at_.is(TokenKind::kName)) return at_.unexpected("a statement's name");
    return at_.unknown("the statement " + at_.now().text);
  }

  Result<Node> condition() {
    Node node = make(Kind::kIf);
    TROUPE_ASSIGN(node->value, expressions_.tuple(false));
    std::string ended;
    TROUPE_ASSIGN(node->body, block({"elif", "else", "endif"}, &ended));
    if (ended == "elif") {
      if (++depth_ > kMaxDepth) return at_.unknown("more than " + std::to_string(kMaxDepth) + " branches");
      TROUPE_ASSIGN(Node branch, condition());
      --depth_;
      node->otherwise.push_back(std::move(branch));
    } else if (ended == "else") {
      TROUPE_ASSIGN(node->otherwise, block({"endif"}));
    }
    return node;
  }

  Result<Node> loop() {
    Node node = make(Kind::kFor);
    TROUPE_ASSIGN(node->target, target());
    if (!node->target.attribute.empty()) return at_.unexpected("a name");
    if (!at_.skip_name("in")) return at_.unexpected("'in'");
    TROUPE_ASSIGN(node->value, expressions_.tuple(false));
    if (at_.skip_name("if")) {
      TROUPE_ASSIGN(node->condition, expressions_.expression());
    }
    if (at_.is_name("recursive")) return at_.unknown("a recursive loop");
    std::string ended;
    ++loops_;
    TROUPE_ASSIGN(node->body, block({"else", "endfor"}, &ended));
    --loops_;
    if (ended == "else") {
      TROUPE_ASSIGN(node->otherwise, block({"endfor"}));
    }
    return node;
  }

  Result<Node> assignment() {
    Node node = make(Kind::kSet);
    TROUPE_ASSIGN(node->target, target());
    if (at_.skip_operator("=")) {
      TROUPE_ASSIGN(node->value, expressions_.tuple());
      return node;
    }
    if (at_.is_operator("|")) return at_.unknown("a set block with a filter");
    if (node->target.tuple) return at_.unexpected("'='");
    node->kind = Kind::kSetBlock;
    const int outside = std::exchange(loops_, 0);
    TROUPE_ASSIGN(node->body, block({"endset"}));
    loops_ = outside;
    return node;
  }

  Result<Target> target() {
    Target target;
    const bool parentheses = at_.skip_operator("(");
    do {
      TROUPE_ASSIGN(std::string name, at_.expect_name());
      for (const char* word : {"loop", "caller", "varargs", "kwargs", "true", "false", "none", "True", "False", "None"})
        if (name == word) return at_.unknown("an assignment to " + name);
      program_.assigned.insert(name);
      target.names.push_back(std::move(name));
      if (target.names.size() == 1 && at_.skip_operator(".")) {
        TROUPE_ASSIGN(target.attribute, at_.expect_name());
        break;
      }
    } while (at_.is_operator(",") && (target.tuple = true, at_.skip_operator(",")));
    if (parentheses) TROUPE_RETURN_IF_ERROR(at_.expect_operator(")"));
    return target;
  }

  Result<Node> macro() {
    if (depth_ > 1) return at_.unknown("a macro inside another block");
    Node node = make(Kind::kMacro);
    auto made = std::make_unique<MacroNode>();
    TROUPE_ASSIGN(made->name, at_.expect_name());
    TROUPE_RETURN_IF_ERROR(at_.expect_operator("("));
    while (!at_.is_operator(")")) {
      TROUPE_ASSIGN(std::string parameter, at_.expect_name());
      if (made->parameters.size() == kMaxArguments) return at_.unknown("so many parameters");
      if (std::count(made->parameters.begin(), made->parameters.end(), parameter) > 0 || parameter == "caller" ||
          parameter == "loop")
        return at_.unknown("the parameter " + parameter);
      ExpressionPtr otherwise;
      if (at_.skip_operator("=")) {
        TROUPE_ASSIGN(otherwise, expressions_.expression());
      } else if (!made->defaults.empty() && made->defaults.back() != nullptr) {
        return at_.unexpected("a default");
      }
      program_.assigned.insert(parameter);
      made->parameters.push_back(std::move(parameter));
      made->defaults.push_back(std::move(otherwise));
      if (!at_.skip_operator(",")) break;
    }
    TROUPE_RETURN_IF_ERROR(at_.expect_operator(")"));
    std::set<std::string> all = std::exchange(program_.names, {});
    TROUPE_ASSIGN(made->body, block({"endmacro"}));
    for (const char* word : {"caller", "varargs", "kwargs"})
      if (program_.names.count(word) > 0) return at_.unknown(std::string(word) + " in a macro");
    all.merge(program_.names);
    program_.names = std::move(all);
    node->macro = std::move(made);
    return node;
  }

  TokenStream at_;
  Program program_;
  ExpressionParser expressions_;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Result<Program> parse(std::vector<Token> tokens) { return Parser(std::move(tokens)).run(); }

}  // namespace troupe::jinja
