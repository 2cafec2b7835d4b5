#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/data/record.h"
#include "actors/data/record_table.h"
#include "base/result.h"

/// What may stand under one key of a record: reading it, and the words for what is wrong with it.
namespace troupe::record_fields {

using Json = nlohmann::json;

inline constexpr double kMostWeight = 1000;

/// A key of the object and its value.
struct Found {
  std::string key;
  const Json* value = nullptr;
  explicit operator bool() const { return value != nullptr; }
};

/// null, "", [] and a list of nulls.
bool is_empty(const Json& value);
/// Also objects and lists of nothing else, and a text of nothing but JSON's "[]", "{}" or "null".
bool holds_nothing(const Json& value);
/// Also false, 0, "none" and "false", as a label or a switch has them.
bool says_nothing(const Json& value);
/// The column's value where it holds something. InvalidArgument where two of its keys hold different ones.
Result<Found> present(const Json& object, Column column, const RecordSpelling& spelling);
/// Whether the spec gives this key a meaning of its own, or says that it has none (`ignored`).
bool named_by_spec(const std::string& key, const RecordSpelling& spelling);
/// Why the key is refused, by refusal_of_key: when it holds something, and says more than false, 0 or "none", which
/// only of a preference mean something. Empty: it is not, or the spec names it.
std::string_view refusal_of(const std::string& key, const Json& value, KeyPlace place, const RecordSpelling& spelling);
/// Which of the spec's columns the object or one of its turns has.
NamedColumns named_columns(const Json& object, const RecordSpelling& spelling);
/// A value as a message shows it: in quotes, cut short.
std::string quoted(std::string s);
/// "a list", "an object", ...
std::string type_of(const Json& value);
/// "its keys: 'a, b'"
std::string keys_text(const Json& object);
Status wrong_type(const std::string& key, const Json& value, const char* understood);

/// An item of a list of images: a path, bytes, or an object with `path` or `url`, or with `bytes` or `base64`, which in
/// JSON are both in base64.
Status read_image(const Json& item, const std::string& key, std::vector<RecordMedium>& images);
/// One image or a list of them.
Status read_image_list(const Json& value, const std::string& key, const RecordSpelling& spelling,
                       std::vector<RecordMedium>& images);
/// InvalidArgument when something that would change what is seen of an image stands in its object or part; begins with
/// `where`.
Status refuse_image_settings(const Json& object, const std::string& where, const RecordSpelling& spelling);
/// The first key of an image's or a video's object that holds something and speaks of how it is to be seen
/// (sets_medium), or of one in it; empty: there is none.
std::string unread_setting(const Json& object, const RecordSpelling& spelling, int levels = 8);
/// The object, or what is left of it, in `own`, without the keys that the spec ignores.
const Json& without_ignored(const Json& object, const RecordSpelling& spelling, Json& own);
/// InvalidArgument: the turns' parts name `media` themselves, and so does the record's list under `key`, whose first
/// ones the parts without one would take.
Status refuse_both(const std::string& media, const std::string& key);
/// What a value says of how much an answer counts: true is 1, false 0. InvalidArgument begins with `where`.
Result<float> read_weight(const Json& value, const std::string& where);

}  // namespace troupe::record_fields
