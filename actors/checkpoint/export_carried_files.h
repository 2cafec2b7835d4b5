#pragma once

#include <string>

#include "actors/checkpoint/model_io.h"
#include "base/safetensors/safetensors_file.h"

namespace troupe::checkpoint {

/// Copies what a model folder holds beside its weights (config.json, tokenizer, processor, chat template, generation
/// config, licence...) from the source to `target`, writing what the spec says of images and videos where the
/// processors read it. With `new_dtype` the config names that dtype, so that a loader does not cast the weights back.
/// Missing optional files are warned about; config.json must be there.
Status carry_files(const ExportOptions& options, const std::string& target, const FileDType* new_dtype);

}  // namespace troupe::checkpoint
