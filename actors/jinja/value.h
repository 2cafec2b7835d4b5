#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "actors/jinja/budget.h"
#include "base/result.h"

/// A small evaluator of the Jinja that chat templates are written in, with the meaning that transformers' environment
/// gives it (trim_blocks, lstrip_blocks, loop controls, an immutable sandbox). Public: template.h.
namespace troupe::jinja {

struct MacroNode;
struct Namespace;
struct Stream;
struct LoopPosition;
class Value;

using Items = std::vector<Value>;
using Entries = std::vector<std::pair<Value, Value>>;  // of a dict, in order

/// What an expression gives. Copies are cheap and share what they hold, which never changes, but for namespaces and for
/// streams that are used up.
class Value {
 public:
  enum class Kind {
    kUndefined,  // text(): the name that is not there
    kNone,
    kBool,
    kInteger,
    kString,
    kList,
    kTuple,
    kView,    // a sequence that is iterated only: range(), keys(), items()
    kStream,  // the same, once: what a filter such as selectattr gives
    kDict,
    kNamespace,
    kLoop,
    kMacro,
    kFunction,  // a global function, by name
    kMethod,    // a method of bound(), by name
  };

  Value() = default;
  static Value undefined(std::string name) { return named(Kind::kUndefined, std::move(name)); }
  static Value none() { return Value(Kind::kNone, std::monostate()); }
  static Value boolean(bool b) { return Value(Kind::kBool, static_cast<int64_t>(b)); }
  static Value integer(int64_t n) { return Value(Kind::kInteger, n); }
  static Value string(std::string s) { return named(Kind::kString, std::move(s)); }
  /// A string that whoever passes it on need not look at; `looked_at` is set when somebody does, and outlives it. With
  /// null it is a plain one.
  static Value watched(std::string s, bool* looked_at);
  static Value sequence(Kind kind, Items items);  // kList, kTuple, kView, kStream
  static Value list(Items items) { return sequence(Kind::kList, std::move(items)); }
  static Value dict(Entries entries);
  static Value name_space(std::shared_ptr<Namespace> space) { return Value(Kind::kNamespace, std::move(space)); }
  static Value loop(std::shared_ptr<const LoopPosition> at) { return Value(Kind::kLoop, std::move(at)); }
  static Value macro(const MacroNode* node) { return Value(Kind::kMacro, node); }
  static Value function(std::string name) { return named(Kind::kFunction, std::move(name)); }
  static Value method(const Value& of, std::string name);
  /// Numbers with a fraction become undefined: nothing here reads one. Strings at the keys `content` and `text` are
  /// watched.
  static Value from_json(const nlohmann::ordered_json& json, bool* looked_at);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::kBool || kind_ == Kind::kInteger; }
  int64_t number() const { return std::get<int64_t>(held_); }
  /// Of a string, and the name of what is undefined, a function or a method.
  const std::string& text() const;
  /// The text of a string for those who pass it on as a part of what is watched as well.
  const std::string& unseen_text() const;
  bool* looked_at() const { return looked_at_; }
  const Items& items() const;  // of a list, tuple or view
  const Entries& entries() const { return *std::get<std::shared_ptr<const Entries>>(held_); }
  Namespace& space() const { return *std::get<std::shared_ptr<Namespace>>(held_); }
  const LoopPosition& position() const { return *std::get<std::shared_ptr<const LoopPosition>>(held_); }
  const MacroNode& macro_node() const { return *std::get<const MacroNode*>(held_); }
  const Value& bound() const;
  Stream& stream() const { return *std::get<std::shared_ptr<Stream>>(held_); }

  /// Levels of what it holds: 0 for what holds nothing.
  int depth() const { return depth_; }
  /// Whether it is or holds a namespace or a loop, which must not be held by others: they might hold each other.
  bool refers() const { return refers_; }
  /// As Python tells true from false.
  bool truth() const;
  /// "a string", "a list": for messages.
  const char* kind_name() const;

 private:
  struct Bound;
  using Held = std::variant<std::monostate, int64_t, std::shared_ptr<const std::string>, std::shared_ptr<const Items>,
                            std::shared_ptr<const Entries>, std::shared_ptr<Namespace>, std::shared_ptr<Stream>,
                            std::shared_ptr<const LoopPosition>, const MacroNode*, std::shared_ptr<const Bound>>;
  template <typename T>
  Value(Kind kind, T held)
      : kind_(kind), refers_(kind == Kind::kNamespace || kind == Kind::kLoop), held_(std::move(held)) {}
  static Value named(Kind kind, std::string s);
  void hold(const Value& part);

  Kind kind_ = Kind::kUndefined;
  bool refers_ = false;
  int depth_ = 0;
  bool* looked_at_ = nullptr;
  Held held_;
};

struct Namespace {
  std::map<std::string, Value> names;
};

struct Stream {
  Items items;
  bool used = false;
};

struct LoopPosition {
  int64_t index0 = 0, length = 0;
  Value previous, next;
};

/// Bytes of the texts in a JSON value, and some for each of its parts.
size_t weight_of(const nlohmann::ordered_json& json);

// What follows ends as Unimplemented when the budget does not allow it.

/// Whether Python finds them equal. Unimplemented for kinds that are compared by identity.
Result<bool> equal(const Value& a, const Value& b, Budget& budget);
/// Less, equal or greater (-1, 0, 1) of numbers or of strings; InvalidArgument for others.
Result<int> order(const Value& a, const Value& b, Budget& budget);
/// The entry of a dict, or nullptr. Unimplemented as `equal` says.
Result<const Value*> find(const Entries& entries, const Value& key, Budget& budget);
/// What Python's str() gives. Unimplemented for lists, dicts and other objects, which no chat prints.
Result<std::string> to_text(const Value& value, Budget& budget);
/// What json.dumps gives with ensure_ascii=False. InvalidArgument for what it refuses.
Result<std::string> to_json(const Value& value, Budget& budget);
/// The items that a for loop goes through; uses up a stream. InvalidArgument for what is not iterable.
Result<Items> iterate(const Value& value, Budget& budget);
/// len(). InvalidArgument for what has none.
Result<int64_t> length(const Value& value, Budget& budget);

/// Why an evaluation ends: the template fails on its input (as Python would), or has something that is not known here.
Error fails(std::string how);
Error not_known(std::string what);

}  // namespace troupe::jinja
