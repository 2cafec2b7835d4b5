#include <algorithm>

#include "actors/jinja/calls.h"
#include "actors/jinja/operations.h"
#include "actors/jinja/text.h"

namespace troupe::jinja {

using Kind = Value::Kind;

constexpr int64_t kMaxRange = 100'000;  // of Jinja's sandbox

const Value* Arguments::get(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [given, value] : named)
    if (given == name) return &value;
  return nullptr;
}

Status Arguments::only(std::initializer_list<std::string_view> names) const {
  if (positional.size() > names.size()) return not_known("so many arguments");
  for (const auto& [given, value] : named) {
    const auto* at = std::find(names.begin(), names.end(), given);
    if (at == names.end() || static_cast<size_t>(at - names.begin()) < positional.size())
      return not_known("the argument " + given);
  }
  return {};
}

Result<std::string> with_case(const std::string& text, bool upper, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(budget.text(text.size()));
  std::string out = text;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80) return not_known("upper and lower case beyond ASCII");
    if (upper ? (c >= 'a' && c <= 'z') : (c >= 'A' && c <= 'Z')) c = static_cast<char>(c ^ 0x20);
  }
  return out;
}

Result<std::string> replaced(const std::string& text, const std::string& from, const std::string& to, int64_t times,
                             Budget& budget) {
  if (from.empty()) return not_known("the replacement of an empty string");
  TROUPE_RETURN_IF_ERROR(budget.text(text.size()));
  std::string out;
  size_t done = 0;
  for (; times != 0; times -= times > 0 ? 1 : 0) {
    TROUPE_ASSIGN(const size_t at, find_text(text, from, done, budget));
    if (at == std::string::npos) break;
    TROUPE_RETURN_IF_ERROR(budget.bytes(to.size()));
    out.append(text, done, at - done);
    out += to;
    done = at + from.size();
  }
  return out.append(text, done);
}

Result<std::string> joined(const Items& items, const std::string& between, Budget& budget) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    TROUPE_ASSIGN(const std::string text, to_text(items[i], budget));
    TROUPE_RETURN_IF_ERROR(budget.bytes(text.size() + between.size()));
    if (i > 0) out += between;
    out += text;
  }
  return out;
}

namespace {

/// A string argument, or null for none; anything else is not a string, which Python refuses.
Result<const std::string*> text_argument(const Value* given) {
  if (given == nullptr || given->is(Kind::kNone)) return static_cast<const std::string*>(nullptr);
  if (!given->is(Kind::kString)) return fails(std::string("gives ") + given->kind_name() + " where a string is due");
  return &given->text();
}

Result<int64_t> number_argument(const Value* given, int64_t otherwise) {
  if (given == nullptr) return otherwise;
  if (!given->is_number()) return fails(std::string("gives ") + given->kind_name() + " where a number is due");
  return given->number();
}

Result<Value> strip(const Value& of, const Arguments& given, bool left, bool right, Budget& budget) {
  if (!given.named.empty()) return not_known("a named argument of strip");
  TROUPE_RETURN_IF_ERROR(given.only({"chars"}));
  TROUPE_ASSIGN(const std::string* chars, text_argument(given.get(0, "")));
  TROUPE_RETURN_IF_ERROR(budget.text(of.text().size()));
  if (chars == nullptr) return Value::string(std::string(stripped(of.text(), left, right)));
  TROUPE_ASSIGN(const std::string_view rest, stripped_of(of.text(), *chars, left, right, budget));
  return Value::string(std::string(rest));
}

Result<Value> split_at_blanks(std::string_view text, Budget& budget) {
  Items out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = character_at(text, at);
    if (is_space(c)) {
      if (at > begin) out.push_back(Value::string(std::string(text.substr(begin, at - begin))));
      TROUPE_RETURN_IF_ERROR(budget.text(at - begin));
      begin = at + c.size();
    }
    at += c.size();
  }
  if (begin < text.size()) out.push_back(Value::string(std::string(text.substr(begin))));
  return Value::list(std::move(out));
}

Result<Value> split(const Value& of, const Arguments& given, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(given.only({"sep", "maxsplit"}));
  TROUPE_ASSIGN(const std::string* separator, text_argument(given.get(0, "sep")));
  TROUPE_ASSIGN(int64_t times, number_argument(given.get(1, "maxsplit"), -1));
  const std::string& text = of.text();
  TROUPE_RETURN_IF_ERROR(budget.text(text.size()));
  if (separator == nullptr && times >= 0) return not_known("split at blanks with a limit");
  if (separator == nullptr) return split_at_blanks(text, budget);
  if (separator->empty()) return fails("splits at an empty string");
  Items out;
  size_t done = 0;
  for (; times != 0; times -= times > 0 ? 1 : 0) {
    TROUPE_ASSIGN(const size_t at, find_text(text, *separator, done, budget));
    if (at == std::string::npos) break;
    TROUPE_RETURN_IF_ERROR(budget.text(at - done));
    out.push_back(Value::string(text.substr(done, at - done)));
    done = at + separator->size();
  }
  out.push_back(Value::string(text.substr(done)));
  return Value::list(std::move(out));
}

Result<Value> begins_or_ends(const Value& of, const Arguments& given, bool begins, Budget& budget) {
  if (given.positional.size() != 1 || !given.named.empty()) return not_known("arguments of startswith or endswith");
  const Value& what = given.positional[0];
  TROUPE_RETURN_IF_ERROR(budget.items(what.is(Kind::kTuple) ? what.items().size() : 1));
  const Items all = what.is(Kind::kTuple) ? what.items() : Items{what};
  for (const Value& one : all) {
    if (!one.is(Kind::kString)) return fails("compares the ends of a string with " + std::string(one.kind_name()));
    TROUPE_RETURN_IF_ERROR(budget.bytes(std::min(one.text().size(), of.text().size())));
    if (begins ? of.text().starts_with(one.text()) : of.text().ends_with(one.text())) return Value::boolean(true);
  }
  return Value::boolean(false);
}

Result<Value> replace(const Value& of, const Arguments& given, Budget& budget) {
  if (!given.named.empty() || given.positional.size() < 2) return not_known("arguments of replace");
  TROUPE_RETURN_IF_ERROR(given.only({"old", "new", "count"}));
  TROUPE_ASSIGN(const std::string* from, text_argument(&given.positional[0]));
  TROUPE_ASSIGN(const std::string* to, text_argument(&given.positional[1]));
  TROUPE_ASSIGN(const int64_t times, number_argument(given.get(2, ""), -1));
  if (from == nullptr || to == nullptr) return fails("replaces none");
  TROUPE_ASSIGN(std::string out, replaced(of.text(), *from, *to, times, budget));
  return Value::string(std::move(out));
}

Result<Value> join(const Value& of, const Arguments& given, Budget& budget) {
  if (given.positional.size() != 1 || !given.named.empty()) return not_known("arguments of join");
  TROUPE_ASSIGN(const Items items, iterate(given.positional[0], budget));
  for (const Value& one : items)
    if (!one.is(Kind::kString)) return fails(std::string("joins ") + one.kind_name());
  TROUPE_ASSIGN(std::string out, joined(items, of.text(), budget));
  return Value::string(std::move(out));
}

Result<Value> remove_end(const Value& of, const Arguments& given, bool first, Budget& budget) {
  if (given.positional.size() != 1 || !given.positional[0].is(Kind::kString)) return not_known("such an argument");
  TROUPE_RETURN_IF_ERROR(budget.text(of.text().size()));
  std::string_view text = of.text();
  const std::string& end = given.positional[0].text();
  if (first && text.starts_with(end)) text.remove_prefix(end.size());
  if (!first && text.ends_with(end)) text.remove_suffix(end.size());
  return Value::string(std::string(text));
}

Result<Value> string_method(const Value& of, const std::string& name, const Arguments& given, Budget& budget) {
  if (name == "strip") return strip(of, given, true, true, budget);
  if (name == "lstrip") return strip(of, given, true, false, budget);
  if (name == "rstrip") return strip(of, given, false, true, budget);
  if (name == "split") return split(of, given, budget);
  if (name == "startswith") return begins_or_ends(of, given, true, budget);
  if (name == "endswith") return begins_or_ends(of, given, false, budget);
  if (name == "replace") return replace(of, given, budget);
  if (name == "join") return join(of, given, budget);
  if (name == "removeprefix") return remove_end(of, given, true, budget);
  if (name == "removesuffix") return remove_end(of, given, false, budget);
  if (name == "upper" || name == "lower") {
    TROUPE_RETURN_IF_ERROR(given.only({}));
    TROUPE_ASSIGN(std::string out, with_case(of.text(), name == "upper", budget));
    return Value::string(std::move(out));
  }
  return not_known("the method " + name + " of a string");
}

Result<Value> dict_method(const Value& of, const std::string& name, const Arguments& given, Budget& budget) {
  if (name == "get") {
    if (given.positional.empty() || !given.named.empty()) return not_known("arguments of get");
    TROUPE_RETURN_IF_ERROR(given.only({"key", "default"}));
    const Value& key = given.positional[0];
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return fails("looks for a list or dict among a dict's keys");
    TROUPE_ASSIGN(const Value* found, find(of.entries(), key, budget));
    if (found != nullptr) return *found;
    return given.positional.size() > 1 ? given.positional[1] : Value::none();
  }
  if (name != "items" && name != "keys" && name != "values") return not_known("the method " + name + " of a dict");
  TROUPE_RETURN_IF_ERROR(given.only({}));
  TROUPE_RETURN_IF_ERROR(budget.steps(3 * of.entries().size()));
  Items out;
  for (const auto& [key, value] : of.entries())
    out.push_back(name == "keys" ? key : name == "values" ? value : Value::sequence(Kind::kTuple, {key, value}));
  return Value::sequence(Kind::kView, std::move(out));
}

Result<Value> range(const Arguments& given, Budget& budget) {
  if (given.positional.empty() || given.positional.size() > 3 || !given.named.empty())
    return fails("calls range with other than one to three numbers");
  std::vector<int64_t> n;
  for (const Value& one : given.positional) {
    TROUPE_ASSIGN(const int64_t number, number_argument(&one, 0));
    if (number > int64_t{1} << 40 || number < -(int64_t{1} << 40)) return not_known("a range that long");
    n.push_back(number);
  }
  const int64_t first = n.size() > 1 ? n[0] : 0, end = n.size() > 1 ? n[1] : n[0], step = n.size() > 2 ? n[2] : 1;
  if (step == 0) return fails("calls range with a step of 0");
  const int64_t least = step > 0 ? first : end, most = step > 0 ? end : first;
  const int64_t stride = step > 0 ? step : -step;
  const int64_t count = most > least ? (most - least - 1) / stride + 1 : 0;
  if (count > kMaxRange) return fails("calls range for more than " + std::to_string(kMaxRange) + " numbers");
  TROUPE_RETURN_IF_ERROR(budget.items(static_cast<size_t>(count)));
  Items out;
  for (int64_t i = first; step > 0 ? i < end : i > end; i += step) out.push_back(Value::integer(i));
  return Value::sequence(Kind::kView, std::move(out));
}

Result<Value> made_namespace(const Arguments& given) {
  if (!given.positional.empty()) return not_known("a namespace made of a dict");
  auto space = std::make_shared<Namespace>();
  for (const auto& [name, value] : given.named) {
    if (name.starts_with("_")) return fails("puts " + name + " into a namespace");
    space->names[name] = value;
  }
  return Value::name_space(std::move(space));
}

}  // namespace

Result<Value> call_method(const Value& of, const std::string& name, const Arguments& given, Budget& budget) {
  if (of.is(Kind::kString)) return string_method(of, name, given, budget);
  if (of.is(Kind::kDict)) return dict_method(of, name, given, budget);
  return not_known("the method " + name + " of " + of.kind_name());
}

Result<Value> call_function(const std::string& name, const Arguments& given, Budget& budget) {
  if (name == "range") return range(given, budget);
  if (name == "namespace") return made_namespace(given);
  if (name == "dict" && given.positional.empty()) {
    Entries entries;
    for (const auto& [key, value] : given.named) entries.emplace_back(Value::string(key), value);
    return Value::dict(std::move(entries));
  }
  if (name == "raise_exception") {
    const Value* message = given.get(0, "message");
    TROUPE_ASSIGN(const std::string words, message != nullptr ? to_text(*message, budget) : std::string());
    return fails("raises " + shown(words));
  }
  return not_known("the function " + name);
}

}  // namespace troupe::jinja
