#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace troupe::checkpoint {

using OrderedJson = nlohmann::ordered_json;  // keeps the order of keys

/// InvalidArgument when the file holds no JSON object.
Result<OrderedJson> read_json_object(const std::string& path);
/// Indented by two.
Status write_json_file(const std::string& path, const OrderedJson& json);

}  // namespace troupe::checkpoint
