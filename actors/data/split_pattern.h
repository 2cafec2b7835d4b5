#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe {

/// A tokenizer's split regex over UTF-8 text (PCRE2 with Unicode properties, compiled once; \p{L}, \p{N} and \s as in
/// character_class.h). Thread-safe.
class SplitPattern {
 public:
  /// InvalidArgument with PCRE2's message and the position in the pattern.
  static Result<SplitPattern> compile(const std::string& pattern);
  /// Cuts `text` (well-formed UTF-8) into the matches and the pieces between them, in order, without empty ones;
  /// appended to `pieces`.
  Status split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  SplitPattern(std::shared_ptr<const void> code, bool qwen) : code_(std::move(code)), qwen_(qwen) {}
  std::shared_ptr<const void> code_;  // shared by copies; pcre2_code is immutable after compilation
  bool qwen_;                         // the Qwen family's pattern, which needs no regex engine
};

}  // namespace troupe
