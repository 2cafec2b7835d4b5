#include "actors/jinja/lexer.h"

#include <algorithm>

#include "actors/jinja/text.h"
#include "actors/jinja/value.h"

namespace troupe::jinja {
namespace {

using Kind = Token::Kind;

constexpr size_t kMaxSource = size_t{1} << 18, kLongestName = 200;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Every line end becomes \n, and one at the very end goes.
std::string normalized(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const size_t tag = next_tag();
      std::string_view text = std::string_view(source_).substr(at_, tag - at_);
      if (tag == source_.size()) {
        add(Kind::kText, std::string(text));
        break;
      }
      const char kind = source_[tag + 1];
      const char sign = peek(tag + 2) == '-' || peek(tag + 2) == '+' ? peek(tag + 2) : '\0';
      add(Kind::kText, std::string(text_before(text, kind, sign)));
      skip(tag - at_ + (sign != '\0' ? 3 : 2));
      TROUPE_RETURN_IF_ERROR(kind == '#' ? comment() : inside(kind));
      line_begins_ = at_ > 0 && source_[at_ - 1] == '\n';
    }
    tokens_.push_back({Kind::kEnd, "", line_});
    return std::move(tokens_);
  }

 private:
  char peek(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  Error error(const std::string& how) const { return fails("line " + std::to_string(line_) + ": " + how); }
  Error unknown(const std::string& what) const { return not_known("line " + std::to_string(line_) + ": " + what); }

  size_t next_tag() const {
    for (size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1))
      if (peek(i + 1) == '{' || peek(i + 1) == '%' || peek(i + 1) == '#') return i;
    return source_.size();
  }

  std::string_view text_before(std::string_view text, char kind, char sign) const {
    if (sign == '-') return stripped(text, false, true);
    if (sign == '+' || kind == '{') return text;
    const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line == 0 && !line_begins_) return text;
    return stripped(text.substr(line), true, false).empty() ? text.substr(0, line) : text;
  }

  void add(Kind kind, std::string text) {
    if (kind != Kind::kText || !text.empty()) tokens_.push_back({kind, std::move(text), line_});
  }

  /// Passes the end of a tag, "-%}" or "+%}" or "%}" (no "+" for an output), with the blanks that go with it.
  bool pass_end(std::string_view close, bool trims) {
    std::string_view at = rest();
    const char sign = !at.empty() && (at[0] == '-' || (at[0] == '+' && trims)) ? at[0] : '\0';
    if (sign != '\0') at.remove_prefix(1);
    if (!at.starts_with(close)) return false;
    skip(close.size() + (sign != '\0' ? 1 : 0));
    if (sign == '-') {
      const std::string_view behind = rest();
      skip(behind.size() - stripped(behind, true, false).size());
    } else if (trims && sign == '\0' && peek(at_) == '\n') {
      skip(1);
    }
    return true;
  }

  void skip(size_t bytes) {
    line_ += static_cast<int>(std::count(rest().begin(), rest().begin() + static_cast<std::ptrdiff_t>(bytes), '\n'));
    at_ += bytes;
  }

  Status comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) return error("a comment that does not end");
    const bool signed_end = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    skip(end - at_ - (signed_end ? 1 : 0));
    pass_end("#}", true);
    return {};
  }

  Status inside(char kind) {
    const bool output = kind == '{';
    const std::string_view close = output ? "}}" : "%}";
    add(output ? Kind::kOutputBegin : Kind::kStatementBegin, "");
    std::string open;  // brackets that wait for their ends
    while (at_ < source_.size()) {
      const int line = line_;
      if (open.empty() && pass_end(close, !output)) {
        tokens_.push_back({output ? Kind::kOutputEnd : Kind::kStatementEnd, "", line});
        return {};
      }
      const std::string_view at = rest();
      const std::string_view blank = character_at(at, 0);
      if (is_space(blank)) {
        skip(blank.size());
      } else if (is_digit(at[0])) {
        TROUPE_RETURN_IF_ERROR(number());
      } else if (begins_name(at[0])) {
        size_t n = 1;
        while (begins_name(peek(at_ + n)) || is_digit(peek(at_ + n))) ++n;
        if (n > kLongestName) return unknown("a name of more than " + std::to_string(kLongestName) + " letters");
        add(Kind::kName, std::string(at.substr(0, n)));
        skip(n);
      } else if (at[0] == '\'' || at[0] == '"') {
        TROUPE_RETURN_IF_ERROR(quoted(at[0]));
      } else {
        TROUPE_RETURN_IF_ERROR(operation(open));
      }
    }
    return error(std::string("a tag that does not end with ") + std::string(close));
  }

  Status number() {
    size_t n = 0;
    while (is_digit(peek(at_ + n))) ++n;
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == Kind::kOperator && tokens_.back().text == ".";
    const char next = peek(at_ + n);
    const bool fraction = !after_dot && next == '.' && is_digit(peek(at_ + n + 1));
    if (fraction || begins_name(next) || n > 15 || (n > 1 && source_[at_] == '0'))
      return unknown("the number " + std::string(rest().substr(0, n + (fraction ? 2 : begins_name(next) ? 1 : 0))));
    add(Kind::kInteger, std::string(rest().substr(0, n)));
    skip(n);
    return {};
  }

  Status operation(std::string& open) {
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](std::string_view o) { return rest().starts_with(o); });
    if (found == std::end(kOperators)) return unknown("the character " + shown(character_at(rest(), 0)));
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return error(std::string("'") + c + "' without its beginning");
      open.pop_back();
    }
    add(Kind::kOperator, std::string(*found));
    skip(found->size());
    return {};
  }

  Status quoted(char quote) {
    std::string out;
    const int line = line_;
    size_t i = at_ + 1;
    for (; i < source_.size() && source_[i] != quote; ++i) {
      if (source_[i] != '\\') {
        out += source_[i];
        continue;
      }
      TROUPE_RETURN_IF_ERROR(escape(i, out));
    }
    if (i >= source_.size()) return error("a string that does not end");
    tokens_.push_back({Kind::kString, std::move(out), line});
    skip(i + 1 - at_);
    return {};
  }

  /// The escape at source_[i], the backslash; leaves i at its last byte.
  Status escape(size_t& i, std::string& out) const {
    const char c = peek(++i);
    static constexpr std::string_view kFrom = "ntrabfv\\'\"", kTo = "\n\t\r\a\b\f\v\\'\"";
    if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
      out += kTo[known];
    } else if (c >= '0' && c <= '7') {
      char32_t value = 0;
      size_t n = 0;
      for (; n < 3 && peek(i + n) >= '0' && peek(i + n) <= '7'; ++n)
        value = value * 8 + static_cast<char32_t>(peek(i + n) - '0');
      append_utf8(out, value);
      i += n - 1;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return hexadecimal(i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    } else if (c == 'N' || static_cast<unsigned char>(c) >= 0x80) {
      return unknown("the escape \\" + std::string(character_at(rest(), i - at_)));
    } else if (c != '\n') {  // a backslash before a line's end takes it away; before others it is itself
      out += '\\';
      out += c;
    }
    return {};
  }

  Status hexadecimal(size_t& i, size_t digits, std::string& out) const {
    char32_t value = 0;
    for (size_t n = 1; n <= digits; ++n) {
      const char c = peek(i + n);
      const std::string_view all = "0123456789abcdef";
      const size_t digit = all.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos) return error("a string with a cut \\" + std::string(1, source_[i]));
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      return unknown("the escape " + std::string(rest().substr(i - 1 - at_, digits + 2)));
    append_utf8(out, value);
    i += digits;
    return {};
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;  // whether the text at at_ begins a line
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxSource)
    return not_known("line 1: a template of more than " + std::to_string(kMaxSource) + " bytes");
  return Lexer(source).run();
}

}  // namespace troupe::jinja
