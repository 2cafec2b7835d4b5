#include "actors/jinja/operations.h"

#include <algorithm>
#include <limits>

#include "actors/jinja/names.h"
#include "actors/jinja/text.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

constexpr int64_t kWidestStep = int64_t{1} << 32;

Error undefined_used(const Value& value) { return fails("uses " + shown(value.text()) + ", which is undefined"); }

Result<Value> loop_attribute(const LoopPosition& at, const std::string& name) {
  if (name == "index0") return Value::integer(at.index0);
  if (name == "index") return Value::integer(at.index0 + 1);
  if (name == "first") return Value::boolean(at.index0 == 0);
  if (name == "last") return Value::boolean(at.index0 + 1 == at.length);
  if (name == "length") return Value::integer(at.length);
  if (name == "revindex") return Value::integer(at.length - at.index0);
  if (name == "revindex0") return Value::integer(at.length - at.index0 - 1);
  if (name == "previtem") return at.previous;
  if (name == "nextitem") return at.next;
  return not_known("loop." + shown(name));
}

/// Whether Python's class has an attribute of that name, which then goes before an entry of that name.
bool has_attribute(const Value& of, const std::string& name) {
  switch (of.kind()) {
    case Kind::kString:
      return is_string_method(name);
    case Kind::kDict:
      return is_dict_method(name);
    case Kind::kList:
      return is_list_method(name);
    case Kind::kTuple:
      return is_tuple_method(name);
    case Kind::kBool:
    case Kind::kInteger:
      return is_integer_attribute(name);
    default:
      return false;
  }
}

/// Where an index lies in a sequence of n, or nothing when it is outside.
std::optional<size_t> place(int64_t index, size_t n) {
  if (index < 0) index += static_cast<int64_t>(n);
  if (index < 0 || index >= static_cast<int64_t>(n)) return std::nullopt;
  return static_cast<size_t>(index);
}

std::string_view nth_character(std::string_view text, size_t n) {
  size_t at = 0;
  for (; n > 0; --n) at += character_at(text, at).size();
  return character_at(text, at);
}

std::vector<size_t> places(size_t n, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  const auto size = static_cast<int64_t>(n);
  const auto bounded = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    const int64_t at = *given < 0 ? *given + size : *given;
    return std::clamp<int64_t>(at, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  const int64_t first = bounded(start, step > 0 ? 0 : size - 1), end = bounded(stop, step > 0 ? size : -1);
  std::vector<size_t> out;
  for (int64_t i = first; step > 0 ? i < end : i > end; i += step) out.push_back(static_cast<size_t>(i));
  return out;
}

Result<Value> repeated(const Value& text, int64_t times, Budget& budget) {
  const std::string& once = text.text();
  if (times <= 0 || once.empty()) return Value::string("");
  const size_t most = std::numeric_limits<size_t>::max() / once.size();
  TROUPE_RETURN_IF_ERROR(budget.text(std::min(static_cast<size_t>(times), most) * once.size()));
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += once;
  return Value::string(std::move(out));
}

Result<Value> of_numbers(std::string_view operation, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  if (operation == "+") overflow = __builtin_add_overflow(a, b, &out);
  if (operation == "-") overflow = __builtin_sub_overflow(a, b, &out);
  if (operation == "*") overflow = __builtin_mul_overflow(a, b, &out);
  if (operation == "//" || operation == "%") {
    if (b == 0) return fails("divides by zero");
    if (b == -1) return operation == "%" ? Result<Value>(Value::integer(0)) : of_numbers("-", 0, a);
    const int64_t rest = a % b;
    const bool down = rest != 0 && (rest < 0) != (b < 0);  // Python rounds down
    out = operation == "%" ? rest + (down ? b : 0) : a / b - (down ? 1 : 0);
  }
  if (overflow) return not_known("a number of more than 64 bits");
  return Value::integer(out);
}

Result<bool> contains(const Value& in, const Value& what, Budget& budget) {
  switch (in.kind()) {
    case Kind::kString: {
      if (!what.is(Kind::kString)) return fails(std::string("looks for ") + what.kind_name() + " in a string");
      TROUPE_ASSIGN(const size_t at, find_text(in.text(), what.text(), 0, budget));
      return at != std::string::npos;
    }
    case Kind::kDict: {
      if (what.is(Kind::kList) || what.is(Kind::kDict)) return fails("looks for a list or dict among a dict's keys");
      TROUPE_ASSIGN(const Value* found, find(in.entries(), what, budget));
      return found != nullptr;
    }
    case Kind::kUndefined:
      return false;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      for (const Value& one : in.items()) {
        TROUPE_ASSIGN(const bool same, equal(one, what, budget));
        if (same) return true;
      }
      return false;
    case Kind::kStream:
    case Kind::kLoop:
      return not_known(std::string("'in' with ") + in.kind_name());
    default:
      return fails(std::string("looks into ") + in.kind_name());
  }
}

}  // namespace

Result<Value> attribute(const Value& of, const std::string& name, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(budget.text(name.size()));
  if (name.starts_with("_")) return not_known("the attribute " + shown(name));
  if (has_attribute(of, name)) {
    if (of.is_number()) return not_known("the attribute " + name + " of " + of.kind_name());
    return Value::method(of, name);
  }
  switch (of.kind()) {
    case Kind::kUndefined:
      return undefined_used(of);
    case Kind::kDict: {
      TROUPE_ASSIGN(const Value* found, find(of.entries(), Value::string(name), budget));
      return found != nullptr ? *found : Value::undefined(name);
    }
    case Kind::kNamespace: {
      const auto found = of.space().names.find(name);
      return found != of.space().names.end() ? found->second : Value::undefined(name);
    }
    case Kind::kLoop:
      return loop_attribute(of.position(), name);
    case Kind::kNone:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kBool:
    case Kind::kInteger:
      return Value::undefined(name);
    default:
      return not_known("the attribute " + shown(name) + " of " + of.kind_name());
  }
}

Result<Value> item(const Value& of, const Value& key, Budget& budget) {
  if (of.is(Kind::kUndefined)) return undefined_used(of);
  if (of.is(Kind::kView) || of.is(Kind::kStream) || of.is(Kind::kLoop) || of.is(Kind::kMacro))
    return not_known(std::string("an item of ") + of.kind_name());
  if (of.is(Kind::kDict) && !key.is(Kind::kList) && !key.is(Kind::kDict)) {
    TROUPE_ASSIGN(const Value* found, find(of.entries(), key, budget));
    if (found != nullptr) return *found;
  }
  if (key.is_number() && of.is(Kind::kString)) {
    TROUPE_RETURN_IF_ERROR(budget.bytes(2 * of.text().size()));
    if (const auto at = place(key.number(), count_characters(of.text())))
      return Value::string(std::string(nth_character(of.text(), *at)));
  }
  if (key.is_number() && (of.is(Kind::kList) || of.is(Kind::kTuple)))
    if (const auto at = place(key.number(), of.items().size())) return of.items()[*at];
  if (key.is(Kind::kString)) return attribute(of, key.text(), budget);
  return Value::undefined("an item that is not there");
}

Result<Value> slice(const Value& of, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                    Budget& budget) {
  if (of.is(Kind::kUndefined)) return undefined_used(of);
  if (step == 0) return fails("cuts with a step of 0");
  if (step < -kWidestStep || step > kWidestStep) return not_known("a step that wide");
  if (of.is(Kind::kString)) {
    TROUPE_RETURN_IF_ERROR(budget.items(of.text().size()));
    const auto characters = split_characters(of.text());
    std::string out;
    for (const size_t i : places(characters.size(), start, stop, step)) out += characters[i];
    return Value::string(std::move(out));
  }
  if (of.is(Kind::kView)) return not_known("a part of a view");
  if (!of.is(Kind::kList) && !of.is(Kind::kTuple)) return fails(std::string("cuts ") + of.kind_name());
  const auto taken = places(of.items().size(), start, stop, step);
  TROUPE_RETURN_IF_ERROR(budget.items(2 * taken.size()));
  Items out;
  for (const size_t i : taken) out.push_back(of.items()[i]);
  return Value::sequence(of.kind(), std::move(out));
}

Result<Value> arithmetic(std::string_view operation, const Value& a, const Value& b, Budget& budget) {
  for (const Value* side : {&a, &b})
    if (side->is(Kind::kUndefined)) return undefined_used(*side);
  if (a.is_number() && b.is_number()) return of_numbers(operation, a.number(), b.number());
  if (operation == "*" && a.is(Kind::kString) && b.is_number()) return repeated(a, b.number(), budget);
  if (operation == "*" && b.is(Kind::kString) && a.is_number()) return repeated(b, a.number(), budget);
  if (operation == "%" && a.is(Kind::kString)) return not_known("the formatting of a string with %");
  if (operation == "*" && (a.is(Kind::kList) || b.is(Kind::kList))) return not_known("a list times a number");
  if (operation == "+" && a.is(Kind::kString) && b.is(Kind::kString)) {
    const std::string &left = a.unseen_text(), &right = b.unseen_text();
    TROUPE_RETURN_IF_ERROR(budget.text(left.size() + right.size()));
    return Value::watched(left + right, a.looked_at() != nullptr ? a.looked_at() : b.looked_at());
  }
  if (operation == "+" && a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    TROUPE_RETURN_IF_ERROR(budget.items(a.items().size() + b.items().size()));
    Items all = a.items();
    all.insert(all.end(), b.items().begin(), b.items().end());
    return Value::sequence(a.kind(), std::move(all));
  }
  return fails(std::string("has ") + a.kind_name() + " " + std::string(operation) + " " + b.kind_name());
}

Result<bool> compare(std::string_view operation, const Value& a, const Value& b, Budget& budget) {
  if (operation == "in") return contains(b, a, budget);
  if (operation == "not in") {
    TROUPE_ASSIGN(const bool in, contains(b, a, budget));
    return !in;
  }
  if (operation == "==" || operation == "!=") {
    TROUPE_ASSIGN(const bool same, equal(a, b, budget));
    return same == (operation == "==");
  }
  for (const Value* side : {&a, &b})
    if (side->is(Kind::kUndefined)) return undefined_used(*side);
  TROUPE_ASSIGN(const int sign, order(a, b, budget));
  return operation == "<" ? sign < 0 : operation == "<=" ? sign <= 0 : operation == ">" ? sign > 0 : sign >= 0;
}

}  // namespace troupe::jinja
