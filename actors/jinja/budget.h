#pragma once

#include <algorithm>
#include <cstddef>

#include "base/result.h"

namespace troupe::jinja {

/// The work that one rendering may still do. Whatever goes through a text or a list, or makes one, asks first, so that
/// time and memory are bounded together: a unit is a byte that is looked at or made, or about a nanosecond. It grows
/// with what the template is given. Owner: one Evaluator; not thread-safe.
class Budget {
 public:
  explicit Budget(size_t input_bytes) : left_(kAtLeast + kForEachByte * std::min(input_bytes, kMostInput)) {}

  /// Unimplemented when there is not as much left; then nothing more is granted either.
  Status bytes(size_t n) { return spend(n, 1); }
  Status items(size_t n) { return spend(n, kItem); }
  Status steps(size_t n) { return spend(n, kStep); }
  /// A new text of so many bytes.
  Status text(size_t n) { return n < kMostInput ? spend(n + kStep, 1) : spend(n, kStep); }

 private:
  // The longest chat of the probes takes less than a tenth of kAtLeast.
  static constexpr size_t kAtLeast = size_t{1} << 24, kForEachByte = 256, kMostInput = size_t{1} << 40;
  static constexpr size_t kItem = 48;  // a copy of a Value
  static constexpr size_t kStep = 64;  // an expression or a statement

  Status spend(size_t n, size_t each) {
    if (n > left_ / each) {
      left_ = 0;
      return make_error(ErrorCode::kUnimplemented, "more work than a chat takes");
    }
    left_ -= n * each;
    return {};
  }

  size_t left_;
};

}  // namespace troupe::jinja
