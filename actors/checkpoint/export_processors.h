#pragma once

#include <string>

#include "actors/checkpoint/model_io.h"

namespace troupe::checkpoint {

/// Writes the limits of images and the settings of videos that the spec gave into the processor files of `target`,
/// where transformers' processors look for them. A video processor that took its settings from the image processor's
/// file gets a file of its own when either's are written, so that it keeps what it was trained with.
Status write_processor_settings(const ExportOptions& options, const std::string& target);

}  // namespace troupe::checkpoint
