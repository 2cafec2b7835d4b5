#include "base/convert/shell_words.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/config/scalars.h"

namespace troupe::convert {
namespace {

constexpr size_t kMaxTerm = 200;     // of $(...)
constexpr size_t kMaxWord = 65'536;  // that variables may make; each could double the one before

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// One step of integers; nothing when it overflows or divides by 0.
std::optional<int64_t> combined(int64_t left, char op, int64_t right) {
  int64_t result = 0;
  const bool bad = op == '+'   ? __builtin_add_overflow(left, right, &result)
                   : op == '-' ? __builtin_sub_overflow(left, right, &result)
                   : op == '*' ? __builtin_mul_overflow(left, right, &result)
                               : right == 0;
  if (bad) return std::nullopt;
  return op == '/' ? left / right : result;
}

/// Integers and + - * / between them, as expr and $((...)) have it: * and / go before + and -, else from the left.
std::optional<int64_t> arithmetic(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '\\' || std::isspace(static_cast<unsigned char>(c))) continue;
    if (std::string("+-*/").find(c) != std::string::npos && !parts.back().empty())
      parts.insert(parts.end(), {std::string(1, c), std::string()});
    else
      parts.back() += c;
  }
  int64_t sum = 0, term = 0;
  char sign = '+';
  for (size_t i = 0; i < parts.size(); i += 2) {
    const auto number = is_digits(parts[i]) ? parse_integer(parts[i]) : std::nullopt;
    if (!number) return std::nullopt;
    const char op = i == 0 ? '+' : parts[i - 1][0];
    if (i == 0 || op == '+' || op == '-') {
      const auto before = combined(sum, sign, term);
      if (!before) return std::nullopt;
      sum = *before;
      sign = op;
      term = *number;
    } else if (const auto product = combined(term, op, *number)) {
      term = *product;
    } else {
      return std::nullopt;
    }
  }
  return combined(sum, sign, term);
}

class ShellReader {
 public:
  ShellReader(const std::string& text, const std::string& origin, Diagnostics& diagnostics)
      : text_(text), origin_(origin), diagnostics_(diagnostics) {}

  std::vector<ShellCommand> read() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(commands_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void complain(const std::string& message) { diagnostics_.add({origin_, line_}, message); }

  void step() {
    const char c = peek();
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == '\n' || c == ';') {
      end_command();
      line_ += c == '\n' ? 1 : 0;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
      ++at_;
    } else if (c == '#' && !in_word_) {
      skip_line();
    } else if (c == '|' || c == '<' || c == '>' || c == '&') {
      take_operator(c);
    } else {
      take_character(c);
    }
  }

  /// && and || begin another command; a pipe, a redirection or & ends what is read of the line.
  void take_operator(char c) {
    if (c == '>' && in_word_ && is_digits(word_.text)) drop_word();
    const bool another = c == peek(1) && (c == '&' || c == '|');
    end_command();
    if (another)
      at_ += 2;
    else
      skip_line();
  }

  /// To the end of the line, which a backslash continues unless a comment does the skipping.
  void skip_line() {
    const bool comment = peek() == '#';
    while (at_ < text_.size() && peek() != '\n') {
      if (!comment && peek() == '\\' && peek(1) == '\n') {
        ++line_;
        ++at_;
      }
      ++at_;
    }
  }

  void begin_word() {
    if (!in_word_) word_ = {"", line_};
    in_word_ = true;
  }

  void take_character(char c) {
    begin_word();
    if (c == '\'') return take_single_quotes();
    if (c == '"') return take_double_quotes();
    if (c == '$') return take_variable();
    if (c == '`') {
      complain("has a command between ` and `, which is not run; valid: write what it gives");
      ++at_;
      return;
    }
    if (c == '\\' && at_ + 1 < text_.size()) ++at_;
    word_.text += peek();
    ++at_;
  }

  void take_single_quotes() {
    const int opened = line_;
    for (++at_; at_ < text_.size() && peek() != '\''; ++at_) {
      line_ += peek() == '\n' ? 1 : 0;
      word_.text += peek();
    }
    close_quote(opened);
  }

  void take_double_quotes() {
    const int opened = line_;
    ++at_;
    while (at_ < text_.size() && peek() != '"') {
      line_ += peek() == '\n' ? 1 : 0;
      if (peek() == '$') {
        take_variable();
        continue;
      }
      if (peek() == '\\' && std::string("\"\\$`\n").find(peek(1)) != std::string::npos) {
        ++at_;
        if (peek() == '\n') {
          ++line_;
          ++at_;
          continue;
        }
      }
      word_.text += peek();
      ++at_;
    }
    close_quote(opened);
  }

  void close_quote(int opened) {
    if (at_ >= text_.size()) diagnostics_.add({origin_, opened}, "has a quote that is not closed");
    ++at_;
  }

  void take_variable() {
    if (peek(1) == '(') return take_substitution();
    const bool braces = peek(1) == '{';
    size_t end = at_ + (braces ? 2 : 1);
    const size_t begin = end;
    while (end < text_.size() && is_name_character(text_[end])) ++end;
    const std::string name = text_.substr(begin, end - begin);
    if (name.empty() || (braces && (end >= text_.size() || text_[end] != '}'))) {
      if (!braces && name.empty()) {  // a lone dollar sign
        word_.text += '$';
        ++at_;
        return;
      }
      complain("has '${', which is read with a plain name only, as in ${NAME}; valid: write what it stands for");
      at_ = text_.find_first_of("}\n", at_);
      at_ = at_ == std::string::npos ? text_.size() : at_ + (text_[at_] == '}' ? 1 : 0);
      return;
    }
    at_ = end + (braces ? 1 : 0);
    const auto set = variables_.find(name);
    if (set == variables_.end())
      complain("variable " + name + " is not set in the script; valid: write what it stands for");
    else if (word_.text.size() + set->second.size() > kMaxWord)
      complain("variable " + name + " makes a word of more than " + std::to_string(kMaxWord) + " bytes");
    else
      word_.text += set->second;
  }

  void take_substitution() {
    const bool inner = text_.compare(at_, 3, "$((") == 0;
    const size_t begin = at_ + (inner ? 3 : 2), end = text_.find(inner ? "))" : ")", begin);
    if (end == std::string::npos || end - begin > kMaxTerm) {
      complain("has '$(', which is not closed, or longer than " + std::to_string(kMaxTerm) + " bytes");
      at_ = text_.size();
      return;
    }
    std::string inside = with_variables(text_.substr(begin, end - begin));
    if (!inner && inside.rfind("expr ", 0) == 0)
      inside = inside.substr(5);
    else if (!inner)
      inside.clear();
    const auto value = arithmetic(inside);
    if (!value)
      complain("has $(" + text_.substr(begin, end - begin) +
               "), which is not run; valid: $(expr A / B) of integers, or what it gives");
    else
      word_.text += std::to_string(*value);
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end + (inner ? 2 : 1);
  }

  /// Variables of an arithmetic term, with or without the dollar sign.
  std::string with_variables(const std::string& term) const {
    std::string out;
    for (size_t i = 0; i < term.size();) {
      if (!std::isalpha(static_cast<unsigned char>(term[i])) && term[i] != '_') {
        if (std::string("${}").find(term[i]) == std::string::npos) out += term[i];
        ++i;
        continue;
      }
      size_t end = i;
      while (end < term.size() && is_name_character(term[end])) ++end;
      const std::string name = term.substr(i, end - i);
      const auto set = variables_.find(name);
      out += set == variables_.end() ? name : set->second;
      i = end;
    }
    return out;
  }

  void drop_word() {
    in_word_ = false;
    word_ = {};
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    const size_t equals = word_.text.find('=');
    const bool named =
        equals != std::string::npos && equals > 0 &&
        std::all_of(word_.text.begin(), word_.text.begin() + static_cast<std::ptrdiff_t>(equals), is_name_character) &&
        !std::isdigit(static_cast<unsigned char>(word_.text[0]));
    const bool in_front = std::all_of(command_.words.begin(), command_.words.end(),
                                      [](const ShellWord& w) { return w.text == "export" || w.text == "env"; });
    if (named && in_front)
      command_.assignments.push_back({{word_.text.substr(0, equals), word_.line}, word_.text.substr(equals + 1)});
    else
      command_.words.push_back(word_);
    word_ = {};
  }

  void end_command() {
    end_word();
    const bool alone = command_.words.empty() || command_.words[0].text == "export";
    if (alone)
      for (const auto& [name, value] : command_.assignments) variables_[name.text] = value;
    if (!command_.words.empty() || !command_.assignments.empty()) commands_.push_back(std::move(command_));
    command_ = {};
  }

  const std::string& text_;
  const std::string& origin_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
  int line_ = 1;
  bool in_word_ = false;
  ShellWord word_;
  ShellCommand command_;
  std::map<std::string, std::string> variables_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> read_shell_commands(const std::string& text, const std::string& origin,
                                              Diagnostics& diagnostics) {
  return ShellReader(text, origin, diagnostics).read();
}

}  // namespace troupe::convert
