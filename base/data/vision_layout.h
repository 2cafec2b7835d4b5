#pragma once

#include <cstdint>
#include <vector>

#include "base/data/sample_index.h"
#include "base/model/model_config.h"

/// How the patches of one encoder unit lie over the sequence-parallel ranks of a lane. Pure arithmetic; every rank
/// derives the same.
///
/// Three orders occur. Processor order: images one after the other, frames, then merge blocks in raster order, merge^2
/// patches each. Reading order: merged tokens in that same order. Window order: image by image, frame by frame, window
/// by window (raster order of windows, and of merged tokens within a window; border windows may be smaller), which is
/// the order that the encoder works in. Source: Qwen2.5-VL technical report (arXiv:2502.13923), section 2.1.1.
namespace troupe {

/// One unit's images on one lane, and where its windows are cut over the lane's sp ranks. Windows are numbered over the
/// unit in order (image by image, window by window, as the published model orders them); rank r holds windows
/// [window_cuts[r], window_cuts[r+1]).
struct VisionUnitLayout {
  std::vector<IndexedImage> images;
  std::vector<int64_t> window_cuts;  // [sp + 1]
};

/// For each sp rank, the merged rows that it produces, in local (window) order, as row numbers of the unit in reading
/// order (image by image, raster order of merged tokens). Pure; the boundary's producer layout is made of these.
std::vector<std::vector<int64_t>> merged_rows_of_ranks(const VisionConfig& config, const VisionUnitLayout& layout);

/// Balanced cut of the unit's windows over `sp` ranks by patches (cost of whole windows): [sp + 1], from 0 to the
/// number of windows. A rank gets no window when there are fewer windows than ranks, or when a large neighbour already
/// has its share.
std::vector<int64_t> cut_windows(const VisionConfig& config, const std::vector<IndexedImage>& images, int sp);

/// Positions in the unit's patch tensor (images concatenated, processor order) of the patches that sp rank `rank`
/// holds, in local order [P_local].
std::vector<int64_t> local_patches(const VisionConfig& config, const VisionUnitLayout& layout, int rank);

/// What one rank's encoder must know about a unit. All counts are patches.
struct VisionRankPlan {
  std::vector<int64_t> rank_rows;      // [sp] patches that each rank holds
  std::vector<int64_t> window_starts;  // [windows of this rank + 1] attention segments of window blocks, in local rows
  std::vector<int64_t>
      frame_starts;  // [frames of the unit + 1] attention segments of full blocks, in rows of the unit in window order
  std::vector<int32_t> rows, columns;  // [P_local] patch coordinates in the frame's grid
};
VisionRankPlan plan_vision_rank(const VisionConfig& config, const VisionUnitLayout& layout, int rank);

}  // namespace troupe
