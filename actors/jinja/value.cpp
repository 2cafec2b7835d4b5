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

size_t Value::size() const {
  if (is(Kind::kDict)) return entries().size();
  if (is(Kind::kStream)) return stream().items.size();
  return is(Kind::kList) || is(Kind::kTuple) || is(Kind::kView) ? items().size() : 0;
}

Value Value::from_json(const nlohmann::ordered_json& json) {
  if (json.is_null()) return none();
  if (json.is_boolean()) return boolean(json.get<bool>());
  if (json.is_number_integer()) return integer(json.get<int64_t>());
  if (json.is_string()) return string(json.get<std::string>());
  if (json.is_array()) {
    Items items;
    for (const auto& item : json) items.push_back(from_json(item));
    return list(std::move(items));
  }
  if (!json.is_object()) return {};
  Entries entries;
  for (const auto& [key, value] : json.items()) entries.emplace_back(string(key), from_json(value));
  return dict(std::move(entries));
}

const std::string& Value::text() const {
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

Result<const Value*> find(const Entries& entries, const Value& key) {
  for (const auto& [name, value] : entries) {
    TROUPE_ASSIGN(const bool same, equal(name, key));
    if (same) return &value;
  }
  return static_cast<const Value*>(nullptr);
}

Result<bool> equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  for (const Value* side : {&a, &b})
    if (side->is(Kind::kView) || side->is(Kind::kStream) || side->kind() > Kind::kDict)
      return not_known(std::string("a comparison of ") + side->kind_name());
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kUndefined) || a.is(Kind::kNone)) return true;
  if (a.is(Kind::kString)) return a.text() == b.text();
  if (a.is(Kind::kDict)) {
    if (a.entries().size() != b.entries().size()) return false;
    for (const auto& [key, value] : a.entries()) {
      TROUPE_ASSIGN(const Value* other, find(b.entries(), key));
      if (other == nullptr) return false;
      TROUPE_ASSIGN(const bool same, equal(value, *other));
      if (!same) return false;
    }
    return true;
  }
  if (a.items().size() != b.items().size()) return false;
  for (size_t i = 0; i < a.items().size(); ++i) {
    TROUPE_ASSIGN(const bool same, equal(a.items()[i], b.items()[i]));
    if (!same) return false;
  }
  return true;
}

Result<int> order(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  // UTF-8 sorts by bytes as Python sorts by code points.
  if (a.is(Kind::kString) && b.is(Kind::kString)) return a.text() < b.text() ? -1 : a.text() > b.text();
  if (a.is(Kind::kList) || a.is(Kind::kTuple)) return not_known(std::string("an order of ") + a.kind_name());
  return fails(std::string("has an order of ") + a.kind_name() + " and " + b.kind_name());
}

Result<std::string> to_text(const Value& value) {
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
      return value.text();
    default:
      return not_known(std::string(value.kind_name()) + " written as text");
  }
}

Result<std::string> to_json(const Value& value) {
  const auto quoted = [](const std::string& s) { return nlohmann::json(s).dump(); };
  switch (value.kind()) {
    case Kind::kNone:
      return std::string("null");
    case Kind::kBool:
      return std::string(value.truth() ? "true" : "false");
    case Kind::kInteger:
      return std::to_string(value.number());
    case Kind::kString:
      if (value.text().find('\x7f') != std::string::npos) return not_known("tojson of a control character");
      return quoted(value.text());
    case Kind::kList:
    case Kind::kTuple: {
      std::string out;
      for (const Value& item : value.items()) {
        TROUPE_ASSIGN(const std::string text, to_json(item));
        out += (out.empty() ? "" : ", ") + text;
      }
      return "[" + out + "]";
    }
    case Kind::kDict: {
      std::string out;
      for (const auto& [key, item] : value.entries()) {
        if (!key.is(Kind::kString)) return not_known("tojson of keys that are not strings");
        TROUPE_ASSIGN(const std::string text, to_json(item));
        out += (out.empty() ? "" : ", ") + quoted(key.text()) + ": " + text;
      }
      return "{" + out + "}";
    }
    default:
      return fails(std::string("makes JSON of ") + value.kind_name());
  }
}

Result<Items> iterate(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return Items();
    case Kind::kString: {
      Items characters;
      for (const std::string_view c : split_characters(value.text()))
        characters.push_back(Value::string(std::string(c)));
      return characters;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return value.items();
    case Kind::kDict: {
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

Result<int64_t> length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(split_characters(value.text()).size());
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
