#include <map>

#include "actors/jinja/calls.h"
#include "actors/jinja/operations.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

/// Tests that look at the kind alone; nothing when `name` is none of them.
Result<bool> of_kind(const std::string& name, const Value& of) {
  const Kind kind = of.kind();
  if (name == "defined") return kind != Kind::kUndefined;
  if (name == "undefined") return kind == Kind::kUndefined;
  if (name == "none") return kind == Kind::kNone;
  if (name == "string") return kind == Kind::kString;
  if (name == "mapping") return kind == Kind::kDict;
  if (name == "boolean") return kind == Kind::kBool;
  if (name == "true") return kind == Kind::kBool && of.truth();
  if (name == "false") return kind == Kind::kBool && !of.truth();
  if (name == "integer") return kind == Kind::kInteger;
  if (name == "number") return of.is_number();
  if (name == "float") return false;
  const bool plain = kind <= Kind::kDict;
  if (name == "sequence" && plain)
    return kind == Kind::kUndefined || kind == Kind::kString || kind == Kind::kList || kind == Kind::kTuple ||
           kind == Kind::kDict;
  if (name == "iterable" && plain) return kind != Kind::kNone && !of.is_number();
  return not_known("the test " + name + " of " + of.kind_name());
}

}  // namespace

Result<bool> apply_test(const std::string& name, const Value& of, const Arguments& given, Budget& budget) {
  static const std::map<std::string, std::string> kComparisons = {
      {"equalto", "=="}, {"eq", "=="}, {"==", "=="},      {"ne", "!="},         {"!=", "!="}, {"gt", ">"},
      {">", ">"},        {"ge", ">="}, {">=", ">="},      {"greaterthan", ">"}, {"lt", "<"},  {"<", "<"},
      {"le", "<="},      {"<=", "<="}, {"lessthan", "<"}, {"in", "in"}};
  if (!given.named.empty() || given.positional.size() > 1) return not_known("such arguments of the test " + name);
  if (const auto found = kComparisons.find(name); found != kComparisons.end()) {
    if (given.positional.empty()) return fails("tests with " + name + " and nothing to compare with");
    return compare(found->second, of, given.positional[0], budget);
  }
  if (name == "odd" || name == "even" || name == "divisibleby") {
    if (!of.is_number()) return not_known("the test " + name + " of " + of.kind_name());
    if (name != "divisibleby" && !given.positional.empty()) return not_known("an argument of the test " + name);
    const Value two = Value::integer(2);
    if (name == "divisibleby" && given.positional.empty()) return fails("tests with divisibleby and no number");
    TROUPE_ASSIGN(const Value rest, arithmetic("%", of, name == "divisibleby" ? given.positional[0] : two, budget));
    return (rest.number() != 0) == (name == "odd");
  }
  if (!given.positional.empty()) return not_known("an argument of the test " + name);
  return of_kind(name, of);
}

}  // namespace troupe::jinja
