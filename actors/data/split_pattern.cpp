#include "actors/data/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "actors/data/character_class.h"
#include "actors/data/qwen_split.h"

namespace troupe {
namespace {

// What Unicode calls White_Space. PCRE2's own \s adds U+180E, which the tokenizers' regex engines do not.
constexpr std::string_view kSpace = "\\t-\\r\\x{85}\\p{Z}";

/// Spells out \s, \S (not in a class), \p{L} and \p{N} as the tokenizers' engine means them.
std::string with_unicode_classes(const std::string& pattern) {
  const std::string letters = "\\p{L}" + newer_letters(), numbers = "\\p{N}" + newer_numbers();
  std::string out;
  bool in_class = false;
  const auto add_set = [&](const std::string& set) { out += in_class ? set : "[" + set + "]"; };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = std::string_view(pattern).substr(i);
    if (rest.starts_with("\\p{L}") || rest.starts_with("\\p{N}")) {
      add_set(rest[3] == 'L' ? letters : numbers);
      i += 4;
    } else if (rest.starts_with("\\s")) {
      add_set(std::string(kSpace));
      ++i;
    } else if (rest.starts_with("\\S") && !in_class) {
      out += "[^" + std::string(kSpace) + "]";
      ++i;
    } else if (rest[0] == '\\' && rest.size() > 1) {
      out += rest.substr(0, 2);
      ++i;
    } else {
      if (rest[0] == '[') in_class = true;
      if (rest[0] == ']') in_class = false;
      out += rest[0];
    }
  }
  return out;
}

}  // namespace

Result<SplitPattern> SplitPattern::compile(const std::string& pattern) {
  const std::string text = with_unicode_classes(pattern);
  int code_number = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP,
                                   &code_number, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(code_number, message, sizeof(message));
    return invalid_argument("the split pattern '" + pattern + "' does not compile: " +
                            reinterpret_cast<const char*>(message) + " at " + std::to_string(offset));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  return SplitPattern(std::shared_ptr<const void>(code, [code](const void*) { pcre2_code_free(code); }),
                      is_qwen_pattern(pattern));
}

Status SplitPattern::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  if (qwen_) {
    for (; !text.empty(); text.remove_prefix(pieces.back().size())) pieces.push_back(text.substr(0, qwen_match(text)));
    return {};
  }
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t done = 0;  // everything before it is in `pieces`
  size_t from = 0;
  while (from < text.size()) {
    int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
      rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match.get(), nullptr);
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0)
      return internal_error("splitting a text of " + std::to_string(text.size()) + " bytes failed with PCRE2 error " +
                            std::to_string(rc));
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    if (bounds[1] == bounds[0]) {  // an empty match splits nothing: step over one character
      from = bounds[1] + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0u) == 0x80u) ++from;
      continue;
    }
    if (bounds[0] > done) pieces.push_back(text.substr(done, bounds[0] - done));
    pieces.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
    done = from = bounds[1];
  }
  if (done < text.size()) pieces.push_back(text.substr(done));
  return {};
}

}  // namespace troupe
