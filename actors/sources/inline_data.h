#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// Whether a picture is written into the record itself: "data:image/png;base64,...".
bool is_inline_data(std::string_view path);
/// The path in quotes for a message: the beginning of one that is long, as data URIs are.
std::string shown_path(const std::string& path);
/// "image 'PATH'".
std::string image_name(const std::string& path);

/// The bytes of a data URI in base64 (padding may be missing; the stated media type is not looked at, since content
/// tells the type). InvalidArgument with the reason. Cost: one pass; the result has 3/4 of the text's length.
Result<std::string> decode_inline_data(std::string_view uri);

}  // namespace troupe
