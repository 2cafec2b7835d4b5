#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
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
/// The column's value where it holds something. InvalidArgument where two of its keys hold different ones.
Result<Found> present(const Json& object, Column column, const RecordSpelling& spelling);
/// Whether the spec gives this key a meaning of its own.
bool named_by_spec(const std::string& key, const RecordSpelling& spelling);
/// A value as a message shows it: in quotes, cut short.
std::string quoted(std::string s);
Status wrong_type(const std::string& key, const Json& value, const char* understood);

/// An item of a list of images: a path, bytes, or an object with `path` or `url`, or with `bytes` or `base64`, which in
/// JSON are both in base64.
Status read_image(const Json& item, const std::string& key, std::vector<RecordMedium>& images);
/// One image or a list of them.
Status read_image_list(const Json& value, const std::string& key, std::vector<RecordMedium>& images);
/// Keys beside an image or a video that would change how large it is seen.
inline constexpr std::array<const char*, 4> kSizeSettings{"min_pixels", "max_pixels", "resized_height",
                                                          "resized_width"};
/// InvalidArgument when one of them stands beside an image; begins with `where`.
Status refuse_image_settings(const Json& object, const std::string& where);
/// InvalidArgument: the turns' parts name `media` themselves, and so does the record's list under `key`, whose first
/// ones the parts without one would take.
Status refuse_both(const std::string& media, const std::string& key);
/// What a value says of how much an answer counts: true is 1, false 0. InvalidArgument begins with `where`.
Result<float> read_weight(const Json& value, const std::string& where);

}  // namespace troupe::record_fields
