#pragma once

#include <array>
#include <cstdint>

#include "base/config/job_spec.h"
#include "base/model/model_config.h"

/// What a synthetic sample looks like, known without making one: all samples of a set have one shape.
namespace troupe {

/// Rows and columns of patches of each image: the asked size rounded to whole merge blocks, at least one.
std::array<int32_t, 2> synthetic_grid(const SyntheticData& synthetic, const VisionConfig& vision);

/// Tokens of a sample: its text, and for each image its merged vision tokens with their start and end.
int64_t synthetic_sample_tokens(const SyntheticData& synthetic, const VisionConfig& vision);

}  // namespace troupe
