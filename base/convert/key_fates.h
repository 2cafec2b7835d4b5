#pragma once

#include <string_view>
#include <vector>

#include "base/convert/foreign_config.h"

/// What becomes of every key of another project's configuration: one written table for each project, and one for the
/// keys that both take over from transformers' trainer. docs/convert.md shows the tables as they stand here.
namespace troupe::convert {

enum class Fate {
  kCarried,  // it becomes keys of the spec
  kDropped,  // nothing of it is needed for the same training
  kRefused,  // it would train something else than Troupe can: refused unless it is off
};

struct ForeignKey {
  std::string_view name;
  Fate fate;
  std::string_view text;      // carried: what it becomes; dropped: why; refused: why, and what would be valid
  std::string_view off = {};  // of a refused one: values that ask for nothing, with | between them
};

/// Keys of transformers' TrainingArguments, which both projects accept.
const std::vector<ForeignKey>& trainer_keys();
/// Keys of LLaMA-Factory's own; they go before the trainer's.
const std::vector<ForeignKey>& llama_factory_keys();
/// Keys of ms-swift's own, and variables of the environment that it reads; they go before the trainer's.
const std::vector<ForeignKey>& ms_swift_keys();

/// The row of a key, or null.
const ForeignKey* find_key(ForeignTool tool, std::string_view name);
/// Every name that the tool has a row for.
std::vector<std::string> known_names(ForeignTool tool);
/// Whether a value of a refused key asks for nothing.
bool is_off(const ForeignKey& key, const YamlNode& value);

}  // namespace troupe::convert
