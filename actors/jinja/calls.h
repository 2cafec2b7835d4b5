#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/jinja/value.h"

namespace troupe::jinja {

/// What a call is given.
struct Arguments {
  Items positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument in that place or of that name, or nullptr.
  const Value* get(size_t place, std::string_view name) const;
  /// Unimplemented when something is given that is not among the first `names`, in their order.
  Status only(std::initializer_list<std::string_view> names) const;
};

// What follows ends as Unimplemented when the budget does not allow it.

/// A method of a string or a dict; Unimplemented for those that are not built.
Result<Value> call_method(const Value& of, const std::string& name, const Arguments& given, Budget& budget);
/// A global function; raise_exception fails with its words.
Result<Value> call_function(const std::string& name, const Arguments& given, Budget& budget);
/// `of | name(given)`.
Result<Value> apply_filter(const std::string& name, const Value& of, const Arguments& given, Budget& budget);
/// `of is name(given)`.
Result<bool> apply_test(const std::string& name, const Value& of, const Arguments& given, Budget& budget);

/// The text with letters a-z and A-Z raised or lowered; Unimplemented with letters beyond ASCII.
Result<std::string> with_case(const std::string& text, bool upper, Budget& budget);
/// Each place of `from` replaced, at most `times` of them (negative: all).
Result<std::string> replaced(const std::string& text, const std::string& from, const std::string& to, int64_t times,
                             Budget& budget);
/// Texts with `between` between them.
Result<std::string> joined(const Items& items, const std::string& between, Budget& budget);

}  // namespace troupe::jinja
