#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/convert/conversion_scope.h"

/// What both projects say of the model: its folder, what of it is trained and how.
namespace troupe::convert {

/// model.path from `key`, or from --model. The folder, absolute; nothing when it is refused: a hub's id, no folder.
std::optional<std::string> convert_model_path(const ConversionScope& scope, const std::string& key);

/// Training of all weights, or a refusal of anything else. `keys`: the key and its older names, of which the first that
/// is given counts; without any of them the project takes `lora`. Whether all weights are trained only because of
/// --full.
bool convert_tuner(const ConversionScope& scope, const std::vector<std::string>& keys);

/// components.NAME.train from a key that freezes it.
void convert_freeze(const ConversionScope& scope, const std::string& component, const std::string& key, bool frozen);

/// What config.json says beside shapes; both may be missing.
struct ModelFacts {
  std::optional<std::string> dtype;  // "bfloat16", ...
  std::optional<int64_t> positions;  // max_position_embeddings
};
ModelFacts read_model_facts(const std::string& folder);

}  // namespace troupe::convert
