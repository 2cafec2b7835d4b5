#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"
#include "base/result.h"

/// Samples as a model sees them: token ids, targets, positions and image patches, from records and a model folder's
/// processor files.
namespace troupe {

/// One sample's tokens. ids [S]; target[i] is true when the token at position i is supervised (the loss of row i - 1
/// predicts it).
struct TokenizedSample {
  std::vector<int64_t> ids;
  std::vector<uint8_t> supervised;                // [S]
  std::vector<std::array<int64_t, 3>> positions;  // [S] mRoPE rows t, h, w; as for the sample alone
  std::vector<IndexedImage> images;
  std::vector<float> weights{};  // [S] what a supervised token counts in the loss; empty: 1 each
};

/// Text of a sample, for `troupe eval --show`: the prompt up to the last answer turn, and that answer.
struct SampleText {
  std::string question, answer;
};

/// Opened once a host. Every call is const and thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const SampleIndex& index() const = 0;
  virtual Result<TokenizedSample> tokens(int64_t sample) const = 0;
  /// `image`: an image or a video of the sample, in reading order. fp32 [patches, in_channels * temporal_patch_size *
  /// patch_size^2], rows in the order of the original processor (by t, merge blocks adjacent).
  virtual Result<at::Tensor> patches(int64_t sample, int image) const = 0;
  virtual Result<SampleText> text(int64_t sample) const = 0;
  /// Decodes ids to text; control tokens are spelt out.
  virtual Result<std::string> decode(const std::vector<int64_t>& ids) const = 0;
  /// The id of the end-of-turn token.
  virtual int64_t end_of_turn() const = 0;
};

/// `sources`: data.sources, or eval.sources for the held-out data.
Result<std::unique_ptr<Dataset>> open_dataset(const DataSpec& data, const std::vector<DataSource>& sources,
                                              const std::string& model_folder, const ModelConfig& config,
                                              SampleIndex index);
std::unique_ptr<Dataset> open_synthetic_dataset(const SyntheticData& synthetic, const ModelConfig& config,
                                                uint64_t seed);

/// The pixel limits in force: the spec's, else the folder's preprocessor_config.json, else the processor's defaults.
struct PixelLimits {
  int64_t min_pixels = 56 * 56, max_pixels = 14 * 14 * 4 * 1280;
};
Result<PixelLimits> pixel_limits(const DataSpec& data, const std::string& model_folder);

}  // namespace troupe
