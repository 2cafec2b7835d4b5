#include "actors/data/record_fields.h"

#include <algorithm>
#include <limits>

#include "actors/data/media_names.h"
#include "actors/images/image_file.h"

namespace troupe::record_fields {
namespace {
constexpr size_t kQuotedBytes = 60;  // of a value in a message

/// A picture's bytes, called by the name that stands beside them, or by the key.
RecordMedium image_of_bytes(const Json& bytes, const Json* name, const std::string& key) {
  const auto& held = bytes.get_binary();
  const bool named = name != nullptr && name->is_string() && !name->get_ref<const std::string&>().empty();
  return {named ? name->get<std::string>() : key, std::make_shared<const std::string>(held.begin(), held.end())};
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
         (value.is_array() && value.empty());
}

Found present(const Json& object, Column column, const RecordSpelling& spelling) {
  for (const auto& key : keys_of(column, spelling))
    if (const auto found = object.find(key); found != object.end() && !is_empty(*found)) return {key, &*found};
  return {};
}

Status wrong_type(const std::string& key, const Json& value, const char* understood) {
  return invalid_argument("key '" + key + "' is a " + value.type_name() + "; " + understood + " is understood");
}

Status read_string(const Found& found, std::string& out) {
  if (!found) return {};
  if (!found.value->is_string()) return wrong_type(found.key, *found.value, "a string");
  out = found.value->get<std::string>();
  return {};
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
  if (item.is_object()) {
    const auto bytes = item.find("bytes"), path = item.find("path");
    if (bytes != item.end() && bytes->is_binary()) {
      images.push_back(image_of_bytes(*bytes, path != item.end() ? &*path : nullptr, key));
      return {};
    }
    if (bytes != item.end() && bytes->is_string()) {
      images.push_back("data:;base64," + bytes->get<std::string>());
      return {};
    }
    if (path != item.end() && path->is_string() && !path->get_ref<const std::string&>().empty()) {
      images.push_back(path->get<std::string>());
      return {};
    }
  }
  return invalid_argument("key '" + key + "' holds " +
                          (item.is_string() ? "an empty path" : std::string("a ") + item.type_name()) +
                          "; paths, data URIs and objects with 'path' or 'bytes' are understood");
}

Status read_image_list(const Json& value, const std::string& key, std::vector<RecordMedium>& images) {
  if (!value.is_array()) {
    if (value.is_string() || value.is_object() || value.is_binary()) return read_image(value, key, images);
    return wrong_type(key, value, "a path or a list of paths");
  }
  for (const auto& item : value) TROUPE_RETURN_IF_ERROR(read_image(item, key, images));
  return {};
}

bool holds_medium(const Json& value, const std::function<bool(const Json&)>& is_medium) {
  if (value.is_array())
    return std::any_of(value.begin(), value.end(), [&](const Json& v) { return holds_medium(v, is_medium); });
  if (!value.is_object()) return is_medium(value);
  return std::any_of(value.begin(), value.end(), [&](const Json& v) { return v.is_binary() && is_medium(v); }) ||
         (value.contains("path") && holds_medium(value.at("path"), is_medium));
}

std::string_view bytes_of(const Json& binary) {
  const auto& bytes = binary.get_binary();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool looks_like_picture(const Json& value) {
  return holds_medium(value, [](const Json& v) {
    if (v.is_binary()) return read_image_header(bytes_of(v)).ok();
    return v.is_string() && is_picture_name(v.get_ref<const std::string&>());
  });
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
