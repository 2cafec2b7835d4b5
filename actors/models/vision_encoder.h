#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "base/data/vision_layout.h"
#include "transport/world/world.h"

/// The vision encoder of Qwen2.5-VL (patch embedding, blocks, merger) on one rank of a dp x sp mesh.
/// Source: Qwen2.5-VL technical report (arXiv:2502.13923), section 2.1; sequence parallelism after DeepSpeed-Ulysses
/// (arXiv:2309.14509).
namespace troupe {

/// Saved by forward, used by one backward.
struct VisionContext {
  virtual ~VisionContext() = default;
};

/// Owner thread only. Collectives: all-to-all over sp in full-attention blocks, forward and backward, on every sp rank
/// of the lane (zero rows included).
class VisionEncoder {
 public:
  virtual ~VisionEncoder() = default;
  /// patches: [P_local, patch_dim] fp32, local order. Returns merged rows [T_local, out_hidden], compute dtype, and
  /// fills `context` (left empty when `keep_context` is false: evaluation, or nothing here is trained).
  virtual at::Tensor forward(const VisionUnitLayout& layout, const at::Tensor& patches, bool keep_context,
                             std::unique_ptr<VisionContext>& context) = 0;
  /// grad_rows: [T_local, out_hidden]. Adds weight gradients to the store's gradient buffers.
  virtual void backward(std::unique_ptr<VisionContext> context, const at::Tensor& grad_rows) = 0;
};

/// `world` has communicators over {sp}. `store` holds the components vision and merger.
std::unique_ptr<VisionEncoder> create_vision_encoder(const ModelConfig& config, ParameterStore& store, World& world);

}  // namespace troupe
