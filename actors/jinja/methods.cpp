#include <algorithm>

#include "actors/jinja/calls.h"
#include "actors/jinja/operations.h"
#include "actors/jinja/text.h"

namespace troupe::jinja {

using Kind = Value::Kind;

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

Result<std::string> with_case(const std::string& text, bool upper) {
  std::string out = text;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80) return not_known("upper and lower case beyond ASCII");
    if (upper ? (c >= 'a' && c <= 'z') : (c >= 'A' && c <= 'Z')) c = static_cast<char>(c ^ 0x20);
  }
  return out;
}

Result<std::string> replaced(const std::string& text, const std::string& from, const std::string& to, int64_t times) {
  if (from.empty()) return not_known("the replacement of an empty string");
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string::npos && times != 0; at = text.find(from, done)) {
    out.append(text, done, at - done);
    out += to;
    done = at + from.size();
    if (times > 0) --times;
    if (out.size() > kMaxText) return not_known("a text of that length");
  }
  return out + text.substr(done);
}

Result<std::string> joined(const Items& items, const std::string& between) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    TROUPE_ASSIGN(const std::string text, to_text(items[i]));
    out += (i == 0 ? "" : between) + text;
    if (out.size() > kMaxText) return not_known("a text of that length");
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

Result<Value> strip(const Value& of, const Arguments& given, bool left, bool right) {
  if (!given.named.empty()) return not_known("a named argument of strip");
  TROUPE_RETURN_IF_ERROR(given.only({"chars"}));
  TROUPE_ASSIGN(const std::string* chars, text_argument(given.get(0, "")));
  return Value::string(std::string(stripped(of.text(), chars, left, right)));
}

Result<Value> split(const Value& of, const Arguments& given) {
  TROUPE_RETURN_IF_ERROR(given.only({"sep", "maxsplit"}));
  TROUPE_ASSIGN(const std::string* separator, text_argument(given.get(0, "sep")));
  TROUPE_ASSIGN(int64_t times, number_argument(given.get(1, "maxsplit"), -1));
  Items out;
  std::string_view rest = of.text();
  if (separator == nullptr) {
    if (times >= 0) return not_known("split at blanks with a limit");
    std::string word;
    for (const std::string_view c : split_characters(rest)) {
      if (!is_space(c)) {
        word += c;
      } else if (!word.empty()) {
        out.push_back(Value::string(std::exchange(word, {})));
      }
    }
    if (!word.empty()) out.push_back(Value::string(std::move(word)));
    return Value::list(std::move(out));
  }
  if (separator->empty()) return fails("splits at an empty string");
  for (size_t at = rest.find(*separator); at != std::string_view::npos && times != 0; at = rest.find(*separator)) {
    out.push_back(Value::string(std::string(rest.substr(0, at))));
    rest.remove_prefix(at + separator->size());
    if (times > 0) --times;
    if (out.size() > kMaxItems) return not_known("a list of that length");
  }
  out.push_back(Value::string(std::string(rest)));
  return Value::list(std::move(out));
}

Result<Value> begins_or_ends(const Value& of, const Arguments& given, bool begins) {
  if (given.positional.size() != 1 || !given.named.empty()) return not_known("arguments of startswith or endswith");
  const Value& what = given.positional[0];
  const Items all = what.is(Kind::kTuple) ? what.items() : Items{what};
  for (const Value& one : all) {
    if (!one.is(Kind::kString)) return fails("compares the ends of a string with " + std::string(one.kind_name()));
    if (begins ? of.text().starts_with(one.text()) : of.text().ends_with(one.text())) return Value::boolean(true);
  }
  return Value::boolean(false);
}

Result<Value> replace(const Value& of, const Arguments& given) {
  if (!given.named.empty() || given.positional.size() < 2) return not_known("arguments of replace");
  TROUPE_RETURN_IF_ERROR(given.only({"old", "new", "count"}));
  TROUPE_ASSIGN(const std::string* from, text_argument(&given.positional[0]));
  TROUPE_ASSIGN(const std::string* to, text_argument(&given.positional[1]));
  TROUPE_ASSIGN(const int64_t times, number_argument(given.get(2, ""), -1));
  if (from == nullptr || to == nullptr) return fails("replaces none");
  TROUPE_ASSIGN(std::string out, replaced(of.text(), *from, *to, times));
  return Value::string(std::move(out));
}

Result<Value> join(const Value& of, const Arguments& given) {
  if (given.positional.size() != 1 || !given.named.empty()) return not_known("arguments of join");
  TROUPE_ASSIGN(const Items items, iterate(given.positional[0]));
  for (const Value& one : items)
    if (!one.is(Kind::kString)) return fails(std::string("joins ") + one.kind_name());
  TROUPE_ASSIGN(std::string out, joined(items, of.text()));
  return Value::string(std::move(out));
}

Result<Value> remove_end(const Value& of, const Arguments& given, bool first) {
  if (given.positional.size() != 1 || !given.positional[0].is(Kind::kString)) return not_known("such an argument");
  std::string_view text = of.text();
  const std::string& end = given.positional[0].text();
  if (first && text.starts_with(end)) text.remove_prefix(end.size());
  if (!first && text.ends_with(end)) text.remove_suffix(end.size());
  return Value::string(std::string(text));
}

Result<Value> string_method(const Value& of, const std::string& name, const Arguments& given) {
  if (name == "strip") return strip(of, given, true, true);
  if (name == "lstrip") return strip(of, given, true, false);
  if (name == "rstrip") return strip(of, given, false, true);
  if (name == "split") return split(of, given);
  if (name == "startswith") return begins_or_ends(of, given, true);
  if (name == "endswith") return begins_or_ends(of, given, false);
  if (name == "replace") return replace(of, given);
  if (name == "join") return join(of, given);
  if (name == "removeprefix") return remove_end(of, given, true);
  if (name == "removesuffix") return remove_end(of, given, false);
  if (name == "upper" || name == "lower") {
    TROUPE_RETURN_IF_ERROR(given.only({}));
    TROUPE_ASSIGN(std::string out, with_case(of.text(), name == "upper"));
    return Value::string(std::move(out));
  }
  return not_known("the method " + name + " of a string");
}

Result<Value> dict_method(const Value& of, const std::string& name, const Arguments& given) {
  if (name == "get") {
    if (given.positional.empty() || !given.named.empty()) return not_known("arguments of get");
    TROUPE_RETURN_IF_ERROR(given.only({"key", "default"}));
    const Value& key = given.positional[0];
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return fails("looks for a list or dict among a dict's keys");
    TROUPE_ASSIGN(const Value* found, find(of.entries(), key));
    if (found != nullptr) return *found;
    return given.positional.size() > 1 ? given.positional[1] : Value::none();
  }
  if (name != "items" && name != "keys" && name != "values") return not_known("the method " + name + " of a dict");
  TROUPE_RETURN_IF_ERROR(given.only({}));
  Items out;
  for (const auto& [key, value] : of.entries())
    out.push_back(name == "keys" ? key : name == "values" ? value : Value::sequence(Kind::kTuple, {key, value}));
  return Value::sequence(Kind::kView, std::move(out));
}

Result<Value> range(const Arguments& given) {
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
  Items out;
  for (int64_t i = first; step > 0 ? i < end : i > end; i += step) {
    if (out.size() >= kMaxItems) return not_known("a range that long");
    out.push_back(Value::integer(i));
  }
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

Result<Value> call_method(const Value& of, const std::string& name, const Arguments& given) {
  if (of.is(Kind::kString)) return string_method(of, name, given);
  if (of.is(Kind::kDict)) return dict_method(of, name, given);
  return not_known("the method " + name + " of " + of.kind_name());
}

Result<Value> call_function(const std::string& name, const Arguments& given) {
  if (name == "range") return range(given);
  if (name == "namespace") return made_namespace(given);
  if (name == "dict" && given.positional.empty()) {
    Entries entries;
    for (const auto& [key, value] : given.named) entries.emplace_back(Value::string(key), value);
    return Value::dict(std::move(entries));
  }
  if (name == "raise_exception") {
    const Value* message = given.get(0, "message");
    TROUPE_ASSIGN(const std::string words, message != nullptr ? to_text(*message) : std::string());
    return fails("raises " + shown(words));
  }
  return not_known("the function " + name);
}

}  // namespace troupe::jinja
