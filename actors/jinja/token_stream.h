#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/jinja/lexer.h"
#include "actors/jinja/text.h"
#include "actors/jinja/value.h"

namespace troupe::jinja {

/// Where a parser is among its tokens, the last of which is kEnd.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& behind() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return now().line; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is(Token::Kind kind) const { return now().kind == kind; }
  bool is_operator(std::string_view text) const { return is(Token::Kind::kOperator) && now().text == text; }
  bool is_name(std::string_view text) const { return is(Token::Kind::kName) && now().text == text; }
  bool skip_operator(std::string_view text) { return is_operator(text) && (next(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (next(), true); }

  Status expect_operator(std::string_view text) {
    if (!skip_operator(text)) return unexpected("'" + std::string(text) + "'");
    return {};
  }
  Status expect(Token::Kind kind, const char* what) {
    if (!is(kind)) return unexpected(what);
    next();
    return {};
  }
  Result<std::string> expect_name() {
    if (!is(Token::Kind::kName)) return unexpected("a name");
    std::string name = now().text;
    next();
    return name;
  }

  Error unexpected(const std::string& due) const {
    static constexpr const char* kKinds[] = {"text", "'{{'", "'}}'", "'{%'", "'%}'",
                                             "",     "",     "",     "",     "the template's end"};
    const char* kind = kKinds[static_cast<size_t>(now().kind)];
    return fails("line " + std::to_string(line()) + ": has " + (*kind != '\0' ? kind : shown(now().text)) + " where " +
                 due + " is due");
  }
  Error unknown(const std::string& what) const { return not_known("line " + std::to_string(line()) + ": " + what); }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace troupe::jinja
