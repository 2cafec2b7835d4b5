#pragma once

#include <functional>
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

/// null, "" and [].
bool is_empty(const Json& value);
/// The column's value where it holds something.
Found present(const Json& object, Column column, const RecordSpelling& spelling);
/// A value as a message shows it: in quotes, cut short.
std::string quoted(std::string s);
Status wrong_type(const std::string& key, const Json& value, const char* understood);

/// A string that may be missing.
Status read_string(const Found& found, std::string& out);
/// An item of a list of images: a path, bytes, or an object with `path` or with `bytes`, which in JSON are in base64.
Status read_image(const Json& item, const std::string& key, std::vector<RecordMedium>& images);
/// One image or a list of them.
Status read_image_list(const Json& value, const std::string& key, std::vector<RecordMedium>& images);
/// Whether a value is a medium, or a list, or an object with bytes or a `path`, that holds one. `is_medium` judges
/// words and bytes.
bool holds_medium(const Json& value, const std::function<bool(const Json&)>& is_medium);
/// Of a binary value.
std::string_view bytes_of(const Json& binary);
/// A name of a picture's file, the bytes of a picture, or a list or an object that holds one.
bool looks_like_picture(const Json& value);
/// What a value says of how much an answer counts: true is 1, false 0. InvalidArgument begins with `where`.
Result<float> read_weight(const Json& value, const std::string& where);

}  // namespace troupe::record_fields
