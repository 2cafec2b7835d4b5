#include <charconv>
#include <map>

#include "actors/jinja/calls.h"
#include "actors/jinja/operations.h"
#include "actors/jinja/text.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;
using Filter = Result<Value> (*)(const Value& of, const Arguments& given, Budget& budget);

Result<Value> trim(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({"chars"}));
  const Value* chars = given.get(0, "chars");
  if (chars != nullptr && !chars->is(Kind::kString) && !chars->is(Kind::kNone))
    return fails("trims other than a string");
  TROUPE_ASSIGN(const std::string text, to_text(of, budget));
  if (chars == nullptr || chars->is(Kind::kNone)) return Value::string(std::string(stripped(text, true, true)));
  TROUPE_ASSIGN(const std::string_view rest, stripped_of(text, chars->text(), true, true, budget));
  return Value::string(std::string(rest));
}

Result<Value> cased(const Value& of, bool upper, Budget& budget) {
  TROUPE_ASSIGN(const std::string text, to_text(of, budget));
  TROUPE_ASSIGN(std::string out, with_case(text, upper, budget));
  return Value::string(std::move(out));
}

Result<Value> upper(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  return cased(of, true, budget);
}

Result<Value> lower(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  return cased(of, false, budget);
}

Result<Value> capitalize(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  TROUPE_ASSIGN(const std::string text, to_text(of, budget));
  TROUPE_ASSIGN(std::string out, with_case(text, false, budget));
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] ^ 0x20);
  return Value::string(std::move(out));
}

Result<Value> string(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  TROUPE_ASSIGN(std::string out, to_text(of, budget));
  return Value::string(std::move(out));
}

Result<Value> length_of(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  TROUPE_ASSIGN(const int64_t n, length(of, budget));
  return Value::integer(n);
}

Result<Value> otherwise(const Value& of, const Arguments& given, Budget& /*budget*/) {
  TROUPE_RETURN_IF_ERROR(given.only({"default_value", "boolean"}));
  const Value* value = given.get(0, "default_value");
  const Value* boolean = given.get(1, "boolean");
  const bool replaces = of.is(Kind::kUndefined) || (boolean != nullptr && boolean->truth() && !of.truth());
  return !replaces ? of : value != nullptr ? *value : Value::string("");
}

Result<Value> first(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  TROUPE_ASSIGN(const Items items, iterate(of, budget));
  return items.empty() ? Value::undefined("the first item of nothing") : items.front();
}

Result<Value> last(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  if (of.is(Kind::kStream)) return fails("takes the last item of a stream");
  if (of.is(Kind::kUndefined)) return not_known("the last item of what is undefined");
  TROUPE_ASSIGN(const Items items, iterate(of, budget));
  return items.empty() ? Value::undefined("the last item of nothing") : items.back();
}

Result<Value> list(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  TROUPE_ASSIGN(Items items, iterate(of, budget));
  return Value::list(std::move(items));
}

Result<Value> reverse(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  if (of.is(Kind::kStream) || of.is(Kind::kUndefined))
    return not_known(std::string("the reverse of ") + of.kind_name());
  if (of.is(Kind::kString)) return slice(of, std::nullopt, std::nullopt, -1, budget);
  TROUPE_ASSIGN(const Items items, iterate(of, budget));
  TROUPE_RETURN_IF_ERROR(budget.items(items.size()));
  return Value::sequence(Kind::kStream, Items(items.rbegin(), items.rend()));
}

Result<Value> items_of(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  if (of.is(Kind::kUndefined)) return Value::sequence(Kind::kStream, {});
  if (!of.is(Kind::kDict)) return fails(std::string("takes the items of ") + of.kind_name());
  TROUPE_ASSIGN(const Value view, call_method(of, "items", {}, budget));
  return Value::sequence(Kind::kStream, view.items());
}

Result<Value> json(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({"ensure_ascii"}));
  if (const Value* ascii = given.get(0, "ensure_ascii"); ascii != nullptr && ascii->truth())
    return not_known("tojson with ensure_ascii");
  TROUPE_ASSIGN(std::string text, to_json(of, budget));
  return Value::string(std::move(text));
}

Result<Value> replace(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({"old", "new", "count"}));
  const Value *from = given.get(0, "old"), *to = given.get(1, "new"), *times = given.get(2, "count");
  if (from == nullptr || to == nullptr || !from->is(Kind::kString) || !to->is(Kind::kString) ||
      (times != nullptr && !times->is(Kind::kInteger)))
    return not_known("such arguments of replace");
  TROUPE_ASSIGN(const std::string text, to_text(of, budget));
  TROUPE_ASSIGN(std::string out,
                replaced(text, from->text(), to->text(), times != nullptr ? times->number() : -1, budget));
  return Value::string(std::move(out));
}

Result<Value> integer(const Value& of, const Arguments& given, Budget& /*budget*/) {
  TROUPE_RETURN_IF_ERROR(given.only({}));
  if (of.is_number()) return Value::integer(of.number());
  if (!of.is(Kind::kString)) return not_known(std::string("a number made of ") + of.kind_name());
  int64_t number = 0;
  const std::string& text = of.text();
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    return not_known("a number made of " + shown(text));
  return Value::integer(number);
}

/// What stands at a path such as "a.b" in an item.
Result<Value> at_path(const Value& of, const std::string& path, Budget& budget) {
  Value value = of;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || (part[0] >= '0' && part[0] <= '9')) return not_known("the attribute " + shown(path));
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    TROUPE_ASSIGN(value, item(value, Value::string(part), budget));
    begin = end + 1;
  }
  return value;
}

Result<std::string> path_argument(const Value* given) {
  if (given == nullptr || !given->is(Kind::kString)) return not_known("an attribute that is not a string");
  return given->text();
}

Result<Value> join(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({"d", "attribute"}));
  const Value *between = given.get(0, "d"), *path = given.get(1, "attribute");
  TROUPE_ASSIGN(const std::string separator, between != nullptr ? to_text(*between, budget) : std::string());
  TROUPE_ASSIGN(Items items, iterate(of, budget));
  if (path != nullptr) {
    TROUPE_ASSIGN(const std::string name, path_argument(path));
    for (Value& one : items) {
      TROUPE_ASSIGN(one, at_path(one, name, budget));
    }
  }
  TROUPE_ASSIGN(std::string out, joined(items, separator, budget));
  return Value::string(std::move(out));
}

Result<Value> map(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_ASSIGN(Items items, iterate(of, budget));
  const bool by_path = given.positional.empty() && given.named.size() == 1 && given.named[0].first == "attribute";
  if (!by_path && (given.positional.empty() || !given.named.empty())) return not_known("such arguments of map");
  TROUPE_ASSIGN(const std::string name, path_argument(by_path ? &given.named[0].second : &given.positional[0]));
  Arguments rest;
  if (!by_path) rest.positional.assign(given.positional.begin() + 1, given.positional.end());
  for (Value& one : items) {
    TROUPE_ASSIGN(one, by_path ? at_path(one, name, budget) : apply_filter(name, one, rest, budget));
  }
  return Value::sequence(Kind::kStream, std::move(items));
}

/// What selections judge an item by: a test, or else its truth.
struct Judge {
  std::string test;
  Arguments given;

  Result<bool> fits(const Value& one, Budget& budget) const {
    if (test.empty()) return one.truth();
    return apply_test(test, one, given, budget);
  }
};

Result<Judge> judge_of(const Arguments& given, size_t skip) {
  Judge judge;
  if (given.positional.size() <= skip) return judge;
  TROUPE_ASSIGN(judge.test, path_argument(&given.positional[skip]));
  if (judge.test.empty()) return not_known("a test without a name");
  judge.given.positional.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(skip) + 1,
                                given.positional.end());
  return judge;
}

/// select, reject, selectattr and rejectattr.
Result<Value> selected(const Value& of, const Arguments& given, bool by_attribute, bool wanted, Budget& budget) {
  if (!given.named.empty()) return not_known("named arguments of a selection");
  TROUPE_ASSIGN(const Items items, iterate(of, budget));
  std::string path;
  if (by_attribute) {
    TROUPE_ASSIGN(path, path_argument(given.get(0, "")));
  }
  if (items.empty()) return Value::sequence(Kind::kStream, {});
  TROUPE_ASSIGN(const Judge judge, judge_of(given, by_attribute ? 1 : 0));
  Items out;
  for (const Value& one : items) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    Value judged = one;
    if (by_attribute) {
      TROUPE_ASSIGN(judged, at_path(one, path, budget));
    }
    TROUPE_ASSIGN(const bool fits, judge.fits(judged, budget));
    if (fits == wanted) out.push_back(one);
  }
  return Value::sequence(Kind::kStream, std::move(out));
}

Result<Value> select(const Value& of, const Arguments& given, Budget& budget) {
  return selected(of, given, false, true, budget);
}
Result<Value> reject(const Value& of, const Arguments& given, Budget& budget) {
  return selected(of, given, false, false, budget);
}
Result<Value> selectattr(const Value& of, const Arguments& given, Budget& budget) {
  return selected(of, given, true, true, budget);
}
Result<Value> rejectattr(const Value& of, const Arguments& given, Budget& budget) {
  return selected(of, given, true, false, budget);
}

}  // namespace

Result<Value> apply_filter(const std::string& name, const Value& of, const Arguments& given, Budget& budget) {
  static const std::map<std::string, Filter> kFilters = {{"trim", trim},
                                                         {"upper", upper},
                                                         {"lower", lower},
                                                         {"capitalize", capitalize},
                                                         {"string", string},
                                                         {"length", length_of},
                                                         {"count", length_of},
                                                         {"default", otherwise},
                                                         {"d", otherwise},
                                                         {"first", first},
                                                         {"last", last},
                                                         {"list", list},
                                                         {"reverse", reverse},
                                                         {"items", items_of},
                                                         {"tojson", json},
                                                         {"replace", replace},
                                                         {"int", integer},
                                                         {"join", join},
                                                         {"map", map},
                                                         {"select", select},
                                                         {"reject", reject},
                                                         {"selectattr", selectattr},
                                                         {"rejectattr", rejectattr}};
  const auto found = kFilters.find(name);
  if (found == kFilters.end()) return not_known("the filter " + name);
  TROUPE_RETURN_IF_ERROR(budget.steps(1));
  return found->second(of, given, budget);
}

}  // namespace troupe::jinja
