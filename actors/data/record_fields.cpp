#include "actors/data/record_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "actors/sources/inline_data.h"
#include "base/config/record_spelling.h"

namespace troupe::record_fields {
namespace {
constexpr size_t kQuotedBytes = 60;  // of a value in a message

/// A picture's bytes, called by the name that stands beside them, or by the key.
RecordMedium image_of_bytes(const Json& bytes, const Json* name, const std::string& key) {
  const auto& held = bytes.get_binary();
  const bool named = name != nullptr && name->is_string() && !name->get_ref<const std::string&>().empty();
  return {named ? name->get<std::string>() : key, std::make_shared<const std::string>(held.begin(), held.end())};
}
/// In base64, which may be a data URI already.
RecordMedium inline_image(const std::string& base64) {
  return is_inline_data(base64) ? base64 : "data:;base64," + base64;
}
/// Also a list of one thing and that thing, which may not be a list: one video of frames is not two files.
bool are_same(const Json& a, const Json& b) {
  const auto only = [](const Json& list) -> const Json& {
    return list.is_array() && list.size() == 1 && !list[0].is_array() ? list[0] : list;
  };
  return a == b || only(a) == only(b);
}
}  // namespace

std::string quoted(std::string s) {
  if (s.size() > kQuotedBytes) {
    size_t end = kQuotedBytes;
    while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xC0u) == 0x80u) --end;
    s = s.substr(0, end) + "...";
  }
  return "'" + s + "'";
}

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_null(); }));
}

bool holds_nothing(const Json& value) {
  if (value.is_structured()) return std::all_of(value.begin(), value.end(), holds_nothing);
  if (!value.is_string()) return value.is_null();
  const auto& text = value.get_ref<const std::string&>();
  return text.find_first_not_of(" \t\r\n") == std::string::npos || text == "[]" || text == "{}" || text == "null";
}

bool says_nothing(const Json& value) {
  if (value.is_boolean()) return value == false;
  if (value.is_number()) return value == 0;
  if (!value.is_string()) return holds_nothing(value);
  std::string word;
  for (const char c : value.get_ref<const std::string&>())
    if (c != ' ') word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return holds_nothing(word) || word == "none" || word == "false";
}

Result<Found> present(const Json& object, Column column, const RecordSpelling& spelling) {
  Found first;
  for (const auto& key : keys_of(column, spelling)) {
    const auto found = object.find(key);
    if (found == object.end() || is_empty(*found)) continue;
    if (first && !are_same(*first.value, *found))
      return invalid_argument("has both '" + first.key + "' and '" + key + "', and they differ");
    if (!first) first = {key, &*found};
  }
  return first;
}

bool named_by_spec(const std::string& key, const RecordSpelling& spelling) {
  return is_ignored(key, spelling) ||
         std::any_of(spelling.columns.begin(), spelling.columns.end(),
                     [&](const auto& column) { return column.first != "ignored" && column.second == key; });
}

std::string_view refusal_of(const std::string& key, const Json& value, KeyPlace place, const RecordSpelling& spelling) {
  const KeyRefusal refusal = refusal_of_key(key, place);
  if (refusal.why.empty() || named_by_spec(key, spelling)) return {};
  return (refusal.of_false ? holds_nothing(value) : says_nothing(value)) ? std::string_view() : refusal.why;
}

NamedColumns named_columns(const Json& object, const RecordSpelling& spelling) {
  if (spelling.columns.empty()) return {};
  const auto holds = [](const Json& holder, const std::string& key) {
    const auto found = holder.find(key);  // of what is no object: the end
    return found != holder.end() && !found->is_null();
  };
  const auto holds_usual = [&](const Json& holder, const std::string& column) {
    return std::ranges::any_of(usual_keys_of(column), [&](const std::string& usual) {
      const auto found = holder.find(usual);
      return found != holder.end() && !holds_nothing(*found) && !named_by_spec(usual, spelling);
    });
  };
  NamedColumns named;
  uint32_t bit = 1;
  for (const auto& [name, key] : spelling.columns) {
    const auto look = [&](const Json& holder) {
      if (!key.empty() && holds(holder, key))
        named.held |= bit;
      else if (holds_usual(holder, name))
        named.usual |= bit;
    };
    if (is_turn_column(name)) {
      for (const auto& turns : keys_of(Column::kTurns, spelling))
        if (const auto list = object.find(turns); list != object.end() && list->is_array())
          std::ranges::for_each(*list, look);
    } else if (name != "ignored") {
      look(object);
    }
    bit <<= 1;
  }
  return named;
}

std::string keys_text(const Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) keys += (keys.empty() ? "" : ", ") + key;
  return keys.empty() ? "its object has no keys" : "its keys: " + quoted(std::move(keys));
}

std::string type_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::array:
      return value.empty() ? "an empty list" : "a list";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::binary:
      return "bytes";
    default:
      return "a number";
  }
}

Status wrong_type(const std::string& key, const Json& value, const char* understood) {
  return invalid_argument("key '" + key + "' is " + type_of(value) + "; " + understood + " is understood");
}

Status read_image(const Json& item, const std::string& key, std::vector<RecordMedium>& images) {
  if (item.is_string() && !item.get_ref<const std::string&>().empty()) {
    images.push_back(item.get<std::string>());
    return {};
  }
  if (item.is_binary()) {
    images.push_back(image_of_bytes(item, nullptr, key));
    return {};
  }
  for (const char* word : {"bytes", "base64"}) {
    const auto bytes = item.find(word), path = item.find("path");  // of what is no object: the end
    if (bytes == item.end() || !(bytes->is_binary() || bytes->is_string())) continue;
    const bool none = bytes->is_binary() ? bytes->get_binary().empty() : *bytes == Json("");
    if (none && path != item.end() && path->is_string() && *path != Json("")) continue;
    images.push_back(bytes->is_binary() ? image_of_bytes(*bytes, path != item.end() ? &*path : nullptr, key)
                                        : inline_image(bytes->get_ref<const std::string&>()));
    return {};
  }
  for (const char* word : {"path", "url"})
    if (const auto path = item.find(word); path != item.end() && path->is_string() && !is_empty(*path)) {
      images.push_back(path->get<std::string>());
      return {};
    }
  return invalid_argument("key '" + key + "' holds " + (item.is_string() ? "an empty path" : type_of(item)) +
                          "; paths, data URIs and objects with 'path', 'url', 'bytes' or 'base64' are understood");
}

Status read_image_list(const Json& value, const std::string& key, const RecordSpelling& spelling,
                       std::vector<RecordMedium>& images) {
  if (!value.is_array() && !value.is_string() && !value.is_object() && !value.is_binary())
    return wrong_type(key, value, "a path or a list of paths");
  const auto read = [&](const Json& written) -> Status {
    Json own;
    const Json& item = without_ignored(written, spelling, own);
    if (item.is_object()) TROUPE_RETURN_IF_ERROR(refuse_image_settings(item, "key '" + key + "'", spelling));
    return read_image(item, key, images);
  };
  if (!value.is_array()) return read(value);
  for (const auto& item : value) TROUPE_RETURN_IF_ERROR(read(item));
  return {};
}

std::string unread_setting(const Json& object, const RecordSpelling& spelling, int levels) {
  constexpr std::array<std::string_view, 5> kDone{"do_resize", "do_rescale", "do_normalize", "do_convert_rgb",
                                                  "do_sample_frames"};  // unless they say false
  constexpr std::array<std::string_view, 5> kAbout{"exif", "meta", "metadata", "info", "license"};
  for (const auto& [key, value] : object.items()) {
    if (named_by_spec(key, spelling)) continue;
    const bool done = std::ranges::find(kDone, key) != kDone.end();
    if (done ? value != Json(true) && !holds_nothing(value) : sets_medium(key) && !says_nothing(value)) return key;
    if (!value.is_object() || levels == 0 || std::ranges::find(kAbout, key) != kAbout.end()) continue;
    if (auto below = unread_setting(value, spelling, levels - 1); !below.empty()) return below;
  }
  return {};
}

const Json& without_ignored(const Json& object, const RecordSpelling& spelling, Json& own) {
  if (!object.is_object()) return object;
  bool copied = false;
  for (const auto& [key, value] : object.items()) {
    if (!is_ignored(key, spelling)) continue;
    if (!copied) own = object;
    copied = true;
    own.erase(key);
  }
  return copied ? own : object;
}

Status refuse_image_settings(const Json& object, const std::string& where, const RecordSpelling& spelling) {
  const std::string key = unread_setting(object, spelling);
  if (key.empty()) return {};
  const bool size = std::find(kSizeSettings.begin(), kSizeSettings.end(), key) != kSizeSettings.end();
  return invalid_argument(where + " has an image with '" + key + "', which is not read; valid: " +
                          (size ? "data.min_pixels and data.max_pixels in the spec"
                                : "the image as it is to be seen, or columns: {ignored: " + key + "}"));
}

Status refuse_both(const std::string& media, const std::string& key) {
  return invalid_argument("has " + media + " in parts of its turns and under '" + key + "' too; valid: one of the two");
}

Result<float> read_weight(const Json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0F : 0.0F;
  const double weight = value.is_number() ? value.get<double>() : -1;
  if (!(weight >= 0 && weight <= kMostWeight))
    return invalid_argument(
        where + " is " + quoted(value.dump()) +
        "; true or 1 (the answer is learned), false or 0 (it is not) and numbers up to 1000 are understood");
  // A weight that is not 0 must not become it.
  return weight > 0 ? std::max(static_cast<float>(weight), std::numeric_limits<float>::min()) : 0.0F;
}

}  // namespace troupe::record_fields
