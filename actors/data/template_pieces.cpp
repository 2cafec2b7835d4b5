#include "actors/data/template_pieces.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(kSpace);
  return begin == std::string_view::npos ? std::string_view() : s.substr(begin, s.find_last_not_of(kSpace) - begin + 1);
}

class Pieces {
 public:
  /// Blocks with the rules of whitespace that transformers sets: trim_blocks and lstrip_blocks.
  static std::vector<TemplatePiece> of(std::string_view jinja) {
    Pieces self;
    size_t at = 0;
    bool strip_next = false, trim_newline = false;
    while (at <= jinja.size()) {
      size_t open = jinja.find('{', at);
      while (open != std::string_view::npos && (open + 1 >= jinja.size() || !is_block(jinja[open + 1])))
        open = jinja.find('{', open + 1);
      std::string_view text = jinja.substr(at, open == std::string_view::npos ? open : open - at);
      bool line_start = at == 0;  // whether `text` begins a line
      if (strip_next) {
        text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
      } else if (trim_newline && text.starts_with("\n")) {
        text.remove_prefix(1);
        line_start = true;
      }
      if (open == std::string_view::npos) {
        self.add(TemplatePiece::Kind::kText, std::string(text));
        break;
      }
      const char kind = jinja[open + 1];
      const std::string close = std::string(1, kind == '{' ? '}' : kind) + "}";
      const size_t end = std::min(end_of(jinja, open + 2, close), jinja.size());
      std::string_view inside = jinja.substr(open + 2, end - open - 2);
      if (inside.starts_with("-")) {
        text = text.substr(0, text.find_last_not_of(kSpace) + 1);
        inside.remove_prefix(1);
      } else if (kind != '{' && !inside.starts_with("+")) {
        const size_t kept = text.find_last_not_of(" \t") + 1;  // 0: nothing but blanks
        if (kept > 0 ? text[kept - 1] == '\n' : line_start) text = text.substr(0, kept);
      }
      self.add(TemplatePiece::Kind::kText, std::string(text));
      strip_next = inside.ends_with("-");
      trim_newline = kind != '{' && !inside.ends_with("+");
      if (strip_next || (kind == '%' && inside.ends_with("+"))) inside.remove_suffix(1);
      if (kind == '%' && inside.starts_with("+")) inside.remove_prefix(1);
      if (kind == '{') {
        self.add_expression(trimmed(inside));
      } else if (kind == '%') {
        self.pieces_.push_back({TemplatePiece::Kind::kStatement, std::string(trimmed(inside))});
      }
      at = end + 2;
    }
    return std::move(self.pieces_);
  }

 private:
  static bool is_block(char c) { return c == '{' || c == '%' || c == '#'; }

  /// Where a block ends; quoted text does not end it.
  static size_t end_of(std::string_view jinja, size_t at, std::string_view close) {
    char quote = 0;
    for (; at + 1 < jinja.size(); ++at) {
      if (quote != 0) {
        if (jinja[at] == '\\')
          ++at;
        else if (jinja[at] == quote)
          quote = 0;
      } else if (close[0] != '#' && (jinja[at] == '\'' || jinja[at] == '"')) {
        quote = jinja[at];
      } else if (jinja.substr(at, 2) == close) {
        return at;
      }
    }
    return jinja.size();
  }

  void add(TemplatePiece::Kind kind, std::string text) {
    if (text.empty()) return;
    if (kind == TemplatePiece::Kind::kText && !pieces_.empty() && pieces_.back().kind == kind) {
      pieces_.back().text += text;
    } else {
      pieces_.push_back({kind, std::move(text)});
    }
  }

  static std::string unescaped(std::string_view s) {
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
      if (s[i] != '\\' || i + 1 == s.size()) {
        out += s[i];
        continue;
      }
      const char c = s[++i];
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    return out;
  }

  /// 'literal' + name + 'literal', each on its own.
  void add_expression(std::string_view expression) {
    size_t at = 0;
    while (at < expression.size()) {
      const char c = expression[at];
      if (c == '\'' || c == '"') {
        size_t end = at + 1;
        while (end < expression.size() && expression[end] != c) end += expression[end] == '\\' ? 2 : 1;
        add(TemplatePiece::Kind::kText,
            unescaped(expression.substr(at + 1, std::min(end, expression.size()) - at - 1)));
        at = end + 1;
        continue;
      }
      if (c == '+' || c == '~' || kSpace.find(c) != std::string_view::npos) {
        ++at;
        continue;
      }
      size_t end = at;
      int depth = 0;
      for (; end < expression.size() && (depth > 0 || (expression[end] != '+' && expression[end] != '~')); ++end) {
        const char e = expression[end];
        depth += e == '[' || e == '(' ? 1 : e == ']' || e == ')' ? -1 : 0;
      }
      add(TemplatePiece::Kind::kExpression, std::string(trimmed(expression.substr(at, end - at))));
      at = end;
    }
  }

  std::vector<TemplatePiece> pieces_;
};

}  // namespace

std::vector<TemplatePiece> template_pieces(std::string_view jinja) { return Pieces::of(jinja); }

}  // namespace troupe
