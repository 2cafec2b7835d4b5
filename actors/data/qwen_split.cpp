#include "actors/data/qwen_split.h"

#include <array>

#include "actors/data/character_class.h"

namespace troupe {
namespace {

constexpr std::string_view kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

enum class Kind : unsigned char { kOther, kLetter, kNumber, kSpace, kNewline, kEnd };

constexpr std::array<Kind, 128> make_kinds() {
  std::array<Kind, 128> kinds{};
  for (size_t c = 0; c < kinds.size(); ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    kinds[c] = letter                                            ? Kind::kLetter
               : c >= '0' && c <= '9'                            ? Kind::kNumber
               : c == '\r' || c == '\n'                          ? Kind::kNewline
               : c == ' ' || c == '\t' || c == '\v' || c == '\f' ? Kind::kSpace
                                                                 : Kind::kOther;
  }
  return kinds;
}
constexpr std::array<Kind, 128> kKinds = make_kinds();

Kind kind_of(char32_t character) {
  switch (class_of(character)) {
    case CharacterClass::kLetter:
      return Kind::kLetter;
    case CharacterClass::kNumber:
      return Kind::kNumber;
    case CharacterClass::kSpace:
      return Kind::kSpace;
    case CharacterClass::kOther:
      return Kind::kOther;
  }
  return Kind::kOther;
}

/// A place in well-formed text and the character that stands there.
class Cursor {
 public:
  Cursor(std::string_view text, size_t at) : text_(text), at_(at) { look(); }
  bool is(Kind kind) const { return kind_ == kind; }
  size_t at() const { return at_; }
  size_t behind() const { return at_ + size_; }
  void step() {
    at_ += size_;
    look();
  }
  Cursor next() const { return {text_, behind()}; }
  void pass(Kind kind) {
    while (kind_ == kind) step();
  }

 private:
  void look() {
    if (at_ >= text_.size()) {
      kind_ = Kind::kEnd;
      size_ = 0;
      return;
    }
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text_[at_ + i]); };
    const auto tail = [&](size_t i) { return static_cast<char32_t>(byte(i) & 0x3Fu); };
    const unsigned first = byte(0);
    if (first < 0x80) {
      size_ = 1;
      kind_ = kKinds[first];
    } else if (first < 0xE0) {
      size_ = 2;
      kind_ = kind_of((first & 0x1Fu) << 6 | tail(1));
    } else if (first < 0xF0) {
      size_ = 3;
      kind_ = kind_of((first & 0x0Fu) << 12 | tail(1) << 6 | tail(2));
    } else {
      size_ = 4;
      kind_ = kind_of((first & 0x07u) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3));
    }
  }

  std::string_view text_;
  size_t at_, size_ = 0;
  Kind kind_ = Kind::kEnd;
};

/// 's, 't, 're, 've, 'm, 'll, 'd at the start of `text`, in either case; U+017F is an s then.
size_t contraction(std::string_view text) {
  const auto lower = [&](size_t i) { return i < text.size() ? static_cast<char>(text[i] | 0x20) : '\0'; };
  const char first = lower(1), second = lower(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (text.substr(1).starts_with("\u017F")) return 3;
  const bool two = (second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l');
  return two ? 3 : 0;
}

/// A run of white space, or what the pattern takes of it.
size_t spaces(Cursor cursor) {
  size_t last = 0, behind_newline = 0;
  for (; cursor.is(Kind::kSpace) || cursor.is(Kind::kNewline); cursor.step()) {
    last = cursor.at();
    if (cursor.is(Kind::kNewline)) behind_newline = cursor.behind();
  }
  if (behind_newline > 0) return behind_newline;
  return cursor.is(Kind::kEnd) || last == 0 ? cursor.at() : last;  // the last space goes with the word behind it
}

}  // namespace

bool is_qwen_pattern(std::string_view pattern) { return pattern == kPattern; }

size_t qwen_match(std::string_view text) {
  Cursor first(text, 0);
  if (first.is(Kind::kLetter)) {
    first.pass(Kind::kLetter);
    return first.at();
  }
  if (first.is(Kind::kNumber)) return first.behind();
  if (text.starts_with('\''))
    if (const size_t size = contraction(text); size > 0) return size;
  Cursor second = first.next();
  if (!first.is(Kind::kNewline) && second.is(Kind::kLetter)) {
    second.pass(Kind::kLetter);
    return second.at();
  }
  if (first.is(Kind::kOther) || (text.starts_with(' ') && second.is(Kind::kOther))) {
    second.pass(Kind::kOther);
    second.pass(Kind::kNewline);
    return second.at();
  }
  return spaces(first);
}

}  // namespace troupe
