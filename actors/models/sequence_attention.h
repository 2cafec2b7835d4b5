#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "transport/world/world.h"

/// Full attention over rows that are spread over the ranks of a communicator.
/// Source: DeepSpeed-Ulysses (arXiv:2309.14509).
namespace troupe {

/// q, k, v [local rows, h, d] -> [local rows, h, d], attending within the segments `cu_seqlens` of all rows (those of
/// rank 0, 1, ... in order); rank i holds rank_rows[i] of them. Not causal. One all-to-all turns rows into heads (each
/// rank then has all rows of h / size heads), one turns heads back into rows, and two more run in the backward pass.
/// Every rank takes part in all of them, with or without rows of its own. Requires h % communicator.size() == 0 and
/// equal head counts. `communicator` outlives the backward pass. Saves q, k, v of the exchanged form. Cost a rank: 3
/// rows h d / size elements each way forward for q, k, v and one for the result; as much backward.
at::Tensor sequence_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const std::vector<int64_t>& cu_seqlens, const std::vector<int64_t>& rank_rows,
                              double scale, Communicator& communicator);

}  // namespace troupe
