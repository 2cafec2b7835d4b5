#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "base/data/sample_index.h"
#include "transport/world/world.h"

/// The vision encoder of Qwen2.5-VL (patch embedding, blocks, merger) on one rank of a dp x sp mesh.
/// Source: Qwen2.5-VL technical report (arXiv:2502.13923), section 2.1; sequence parallelism after DeepSpeed-Ulysses (arXiv:2309.14509).
namespace troupe {

/// One unit's images on one lane, and where its windows are cut over the lane's sp ranks. Windows are numbered over the unit in
/// order (image by image, window by window, as the published model orders them); rank r holds windows [window_cuts[r], window_cuts[r+1]).
struct VisionUnitLayout {
  std::vector<IndexedImage> images;
  std::vector<int64_t> window_cuts;  // [sp + 1]
};

/// For each sp rank, the merged rows that it produces, in local (window) order, as row numbers of the unit in reading order
/// (image by image, raster order of merged tokens). Pure; the boundary's producer layout is made of these.
std::vector<std::vector<int64_t>> merged_rows_of_ranks(const VisionConfig& config, const VisionUnitLayout& layout);

/// Balanced cut of the unit's windows over `sp` ranks by patches (cost of whole windows).
std::vector<int64_t> cut_windows(const VisionConfig& config, const std::vector<IndexedImage>& images, int sp);

/// Positions in the unit's patch tensor (images concatenated, processor order) of the patches that sp rank `rank` holds, in local order [P_local].
std::vector<int64_t> local_patches(const VisionConfig& config, const VisionUnitLayout& layout, int rank);

/// Saved by forward, used by one backward.
struct VisionContext {
  virtual ~VisionContext() = default;
};

/// Owner thread only. Collectives: all-to-all over sp in full-attention blocks, forward and backward, on every sp rank of the lane (zero rows included).
class VisionEncoder {
 public:
  virtual ~VisionEncoder() = default;
  /// patches: [P_local, patch_dim] fp32, local order. Returns merged rows [T_local, out_hidden], compute dtype, and fills `context`
  /// (left empty when `keep_context` is false: evaluation, or nothing here is trained).
  virtual at::Tensor forward(const VisionUnitLayout& layout, const at::Tensor& patches, bool keep_context, std::unique_ptr<VisionContext>& context) = 0;
  /// grad_rows: [T_local, out_hidden]. Adds weight gradients to the store's gradient buffers.
  virtual void backward(std::unique_ptr<VisionContext> context, const at::Tensor& grad_rows) = 0;
};

/// `world` has communicators over {sp}. `store` holds the components vision and merger.
std::unique_ptr<VisionEncoder> create_vision_encoder(const ModelConfig& config, ParameterStore& store, World& world);

}  // namespace troupe
