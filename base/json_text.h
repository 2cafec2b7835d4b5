#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text_place.h"

namespace troupe {

/// Levels that objects and lists of a JSON text may stand in each other. Deeper ones would overflow the stack of
/// whoever walks or prints them.
inline constexpr int kMaxJsonDepth = 512;

/// One JSON value of somebody else's making. InvalidArgument whose message is the reason without a file's name: "is not
/// valid JSON at line 1, column 5: ...", nested too deep, or an object that has a key twice (of which a parser would
/// silently take one). `begin` is where the text begins in its file. Thread-safe; throws nothing.
Result<nlohmann::json> parse_json(std::string_view text, TextPlace begin = {});
/// The same, and objects keep the order of their keys.
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, TextPlace begin = {});

/// A figure for a person: with a fraction rounded to 4 places, or digits where it is small; text as it is.
std::string figure_text(const nlohmann::json& value);

/// A library's words without its prefix: "[json.exception.type_error.302] type must be string ..." gives "type must be
/// ...".
std::string json_complaint(const nlohmann::json::exception& e);

}  // namespace troupe
