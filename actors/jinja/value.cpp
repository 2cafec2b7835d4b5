#include "actors/jinja/value.h"

#include <algorithm>

#include "actors/jinja/text.h"

namespace troupe::jinja {

using Kind = Value::Kind;

struct Value::Bound {
  Value of;
  std::string name;
};

Value Value::named(Kind kind, std::string s) { return Value(kind, std::make_shared<const std::string>(std::move(s))); }

void Value::hold(const Value& part) {
  depth_ = std::max(depth_, part.depth_ + 1);
  refers_ = refers_ || part.refers_;
}

Value Value::sequence(Kind kind, Items items) {
  Value value;
  value.kind_ = kind;
  value.depth_ = 1;
  for (const Value& item : items) value.hold(item);
  if (kind == Kind::kStream)
    value.held_ = std::make_shared<Stream>(Stream{std::move(items)});
  else
    value.held_ = std::make_shared<const Items>(std::move(items));
  return value;
}

Value Value::dict(Entries entries) {
  Value value;
  value.kind_ = Kind::kDict;
  value.depth_ = 1;
  for (const auto& [key, entry] : entries) {
    value.hold(key);
    value.hold(entry);
  }
  value.held_ = std::make_shared<const Entries>(std::move(entries));
  return value;
}

Value Value::method(const Value& of, std::string name) {
  Value value(Kind::kMethod, std::make_shared<const Bound>(Bound{of, std::move(name)}));
  value.hold(of);
  return value;
}

Value Value::watched(std::string s, bool* looked_at) {
  Value value = string(std::move(s));
  value.looked_at_ = looked_at;
  return value;
}

Value Value::from_json(const nlohmann::ordered_json& json, bool* looked_at) {
  if (json.is_null()) return none();
  if (json.is_boolean()) return boolean(json.get<bool>());
  if (json.is_number_integer()) return integer(json.get<int64_t>());
  if (json.is_string()) return string(json.get<std::string>());
  if (json.is_array()) {
    Items items;
    for (const auto& item : json) items.push_back(from_json(item, looked_at));
    return list(std::move(items));
  }
  if (!json.is_object()) return {};
  Entries entries;
  for (const auto& [key, value] : json.items())
    entries.emplace_back(string(key), value.is_string() && (key == "content" || key == "text")
                                          ? watched(value.get<std::string>(), looked_at)
                                          : from_json(value, looked_at));
  return dict(std::move(entries));
}

const std::string& Value::text() const {
  if (looked_at_ != nullptr) *looked_at_ = true;
  return unseen_text();
}

const std::string& Value::unseen_text() const {
  static const std::string kEmpty;
  if (const auto* bound = std::get_if<std::shared_ptr<const Bound>>(&held_)) return (*bound)->name;
  const auto* text = std::get_if<std::shared_ptr<const std::string>>(&held_);
  return text != nullptr ? **text : kEmpty;
}

const Items& Value::items() const { return *std::get<std::shared_ptr<const Items>>(held_); }

const Value& Value::bound() const { return std::get<std::shared_ptr<const Bound>>(held_)->of; }

bool Value::truth() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return number() != 0;
    case Kind::kString:
      return !text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return !items().empty();
    case Kind::kDict:
      return !entries().empty();
    default:
      return true;
  }
}

const char* Value::kind_name() const {
  static constexpr const char* kNames[] = {"undefined",   "none",    "a truth value", "a number",   "a string",
                                           "a list",      "a tuple", "a view",        "a stream",   "a dict",
                                           "a namespace", "a loop",  "a macro",       "a function", "a method"};
  return kNames[static_cast<size_t>(kind_)];
}

Error fails(std::string how) { return invalid_argument(std::move(how)); }
Error not_known(std::string what) { return make_error(ErrorCode::kUnimplemented, std::move(what)); }

size_t weight_of(const nlohmann::ordered_json& json) {
  size_t bytes = 64;
  if (json.is_string()) bytes += json.get_ref<const std::string&>().size();
  if (json.is_structured())
    for (const auto& part : json) bytes += weight_of(part);
  return bytes;
}

Result<const Value*> find(const Entries& entries, const Value& key, Budget& budget) {
  for (const auto& [name, value] : entries) {
    TROUPE_ASSIGN(const bool same, equal(name, key, budget));
    if (same) return &value;
  }
  return static_cast<const Value*>(nullptr);
}

namespace {

Result<bool> equal_items(const Items& a, const Items& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    TROUPE_ASSIGN(const bool same, equal(a[i], b[i], budget));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_entries(const Entries& a, const Entries& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a) {
    TROUPE_ASSIGN(const Value* other, find(b, key, budget));
    if (other == nullptr) return false;
    TROUPE_ASSIGN(const bool same, equal(value, *other, budget));
    if (!same) return false;
  }
  return true;
}

}  // namespace

Result<bool> equal(const Value& a, const Value& b, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(budget.items(1));
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  for (const Value* side : {&a, &b})
    if (side->is(Kind::kView) || side->is(Kind::kStream) || side->kind() > Kind::kDict)
      return not_known(std::string("a comparison of ") + side->kind_name());
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kUndefined) || a.is(Kind::kNone)) return true;
  if (a.is(Kind::kDict)) return equal_entries(a.entries(), b.entries(), budget);
  if (!a.is(Kind::kString)) return equal_items(a.items(), b.items(), budget);
  if (a.text().size() != b.text().size()) return false;
  TROUPE_RETURN_IF_ERROR(budget.bytes(a.text().size()));
  return a.text() == b.text();
}

Result<int> order(const Value& a, const Value& b, Budget& budget) {
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    TROUPE_RETURN_IF_ERROR(budget.bytes(std::min(a.text().size(), b.text().size())));
    const int sign = a.text().compare(b.text());  // UTF-8 sorts by bytes as Python sorts by code points
    return sign < 0 ? -1 : sign > 0;
  }
  if (a.is(Kind::kList) || a.is(Kind::kTuple)) return not_known(std::string("an order of ") + a.kind_name());
  return fails(std::string("has an order of ") + a.kind_name() + " and " + b.kind_name());
}

Result<std::string> to_text(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return std::string();
    case Kind::kNone:
      return std::string("None");
    case Kind::kBool:
      return std::string(value.truth() ? "True" : "False");
    case Kind::kInteger:
      return std::to_string(value.number());
    case Kind::kString:
      TROUPE_RETURN_IF_ERROR(budget.text(value.text().size()));
      return value.text();
    default:
      return not_known(std::string(value.kind_name()) + " written as text");
  }
}

namespace {

Status append_quoted(const std::string& text, std::string& out, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(budget.bytes(text.size() * 6));  // a control character is written with so many bytes
  if (text.find('\x7f') != std::string::npos) return not_known("tojson of a control character");
  out += nlohmann::json(text).dump();
  return {};
}

Status append_json(const Value& value, std::string& out, Budget& budget) {
  TROUPE_RETURN_IF_ERROR(budget.steps(1));
  switch (value.kind()) {
    case Kind::kNone:
      out += "null";
      return {};
    case Kind::kBool:
      out += value.truth() ? "true" : "false";
      return {};
    case Kind::kInteger:
      out += std::to_string(value.number());
      return {};
    case Kind::kString:
      return append_quoted(value.text(), out, budget);
    case Kind::kList:
    case Kind::kTuple:
      out += '[';
      for (const Value& item : value.items()) {
        if (&item != value.items().data()) out += ", ";
        TROUPE_RETURN_IF_ERROR(append_json(item, out, budget));
      }
      out += ']';
      return {};
    case Kind::kDict:
      out += '{';
      for (const auto& entry : value.entries()) {
        if (!entry.first.is(Kind::kString)) return not_known("tojson of keys that are not strings");
        if (&entry != value.entries().data()) out += ", ";
        TROUPE_RETURN_IF_ERROR(append_quoted(entry.first.text(), out, budget));
        out += ": ";
        TROUPE_RETURN_IF_ERROR(append_json(entry.second, out, budget));
      }
      out += '}';
      return {};
    default:
      return fails(std::string("makes JSON of ") + value.kind_name());
  }
}

}  // namespace

Result<std::string> to_json(const Value& value, Budget& budget) {
  std::string out;
  TROUPE_RETURN_IF_ERROR(append_json(value, out, budget));
  return out;
}

Result<Items> iterate(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return Items();
    case Kind::kString: {
      TROUPE_RETURN_IF_ERROR(budget.steps(2 * value.text().size()));
      Items characters;
      for (const std::string_view c : split_characters(value.text()))
        characters.push_back(Value::string(std::string(c)));
      return characters;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      TROUPE_RETURN_IF_ERROR(budget.items(value.items().size()));
      return value.items();
    case Kind::kDict: {
      TROUPE_RETURN_IF_ERROR(budget.items(value.entries().size()));
      Items keys;
      for (const auto& [key, item] : value.entries()) keys.push_back(key);
      return keys;
    }
    case Kind::kStream:
      if (value.stream().used) return not_known("a filter's stream used twice");
      value.stream().used = true;
      return std::move(value.stream().items);
    case Kind::kLoop:
      return not_known("a loop over a loop");
    default:
      return fails(std::string("goes through ") + value.kind_name());
  }
}

Result<int64_t> length(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      TROUPE_RETURN_IF_ERROR(budget.bytes(value.text().size()));
      return static_cast<int64_t>(count_characters(value.text()));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.entries().size());
    case Kind::kLoop:
      return not_known("the length of a loop");
    default:
      return fails(std::string("takes the length of ") + value.kind_name());
  }
}

}  // namespace troupe::jinja
