#pragma once

#include "actors/data/chat_form.h"
#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"

namespace troupe {

/// Made-up samples for benches: pure functions of (seed, sample number). Each has its images first (vision start, pads,
/// vision end), then random text tokens of which the second half is supervised. Sides are rounded to whole merge
/// blocks.
SampleTokens synthetic_tokens(const SyntheticData& synthetic, const ModelConfig& config, uint64_t seed, int64_t sample);
/// The index of all of them.
SampleIndex synthetic_index(const SyntheticData& synthetic, const ModelConfig& config, uint64_t seed);
/// Fills [patches * patch_dim] with values in [-1, 1), the same for the same (seed, sample, image).
void fill_synthetic_patches(uint64_t seed, int64_t sample, int image, float* values, int64_t count);

}  // namespace troupe
