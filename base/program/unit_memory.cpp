#include "base/program/unit_memory.h"

namespace troupe {

int64_t encoder_row_bytes(const JobSpec& spec, const VisionConfig& config) {
  const int64_t h = config.hidden, patches = config.merge_size * config.merge_size;
  // A block keeps both residual sums and what their norms make of them, queries, keys and values, what attention makes
  // of them, gate and up, and their product.
  const int64_t block = 8 * h + 3 * config.intermediate;
  const int64_t statistics = 2 + config.heads;  // fp32: of two norms, and of attention by head
  const int64_t element = spec.model.dtype == DType::kFp32 ? 4 : 2;
  // Ahead of the blocks the patches, the stream and its norm; behind them the merger's two inputs and its rows.
  const int64_t ends = config.patch_dim() + 2 * h;
  const int64_t merger = 2 * h * patches + config.out_hidden;
  const int64_t bytes =
      patches * (config.depth * (block * element + statistics * 4) + ends * element) + merger * element;
  const GroupSpec* group = spec.group_of_component("vision");
  const int64_t ranks = group ? group->mesh.size(Axis::kSp) : 1;
  return (bytes + ranks - 1) / ranks;
}

}  // namespace troupe
