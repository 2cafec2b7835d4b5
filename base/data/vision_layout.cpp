#include "base/data/vision_layout.h"

#include <algorithm>

namespace troupe {
namespace {

/// A window of one frame: merged tokens [top, bottom) x [left, right) of a frame whose first merged token is `first` in
/// reading order.
struct Window {
  int64_t first = 0, grid_width = 0;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  int64_t tokens() const { return (bottom - top) * (right - left); }
};

/// Side of a whole window in merged tokens.
int64_t window_side(const VisionConfig& config) { return config.window_size / config.merge_size / config.patch_size; }

int64_t window_count(const VisionConfig& config, const IndexedImage& image) {
  const int64_t side = window_side(config), height = image.h / config.merge_size, width = image.w / config.merge_size;
  return image.t * ((height + side - 1) / side) * ((width + side - 1) / side);
}

/// Calls visit(number, window) for the windows of `images` in order.
template <typename Visit>
void each_window(const VisionConfig& config, const std::vector<IndexedImage>& images, Visit visit) {
  const int64_t side = window_side(config);
  int64_t number = 0, first = 0;
  for (const IndexedImage& image : images) {
    const int64_t height = image.h / config.merge_size, width = image.w / config.merge_size;
    for (int64_t t = 0; t < image.t; ++t, first += height * width) {
      for (int64_t top = 0; top < height; top += side) {
        for (int64_t left = 0; left < width; left += side) {
          visit(number++, Window{first, width, top, std::min(top + side, height), left, std::min(left + side, width)});
        }
      }
    }
  }
}

/// Calls visit(rank, window) for all windows in order.
template <typename Visit>
void each_placed_window(const VisionConfig& config, const VisionUnitLayout& layout, Visit visit) {
  size_t rank = 0;
  each_window(config, layout.images, [&](int64_t number, const Window& window) {
    while (number >= layout.window_cuts[rank + 1]) ++rank;
    TROUPE_CHECK(rank + 1 < layout.window_cuts.size());
    visit(rank, window);
  });
}

/// Calls visit(merged row in reading order, row in the frame, column in the frame) for the merged tokens of a window in
/// order.
template <typename Visit>
void each_token(const Window& window, Visit visit) {
  for (int64_t y = window.top; y < window.bottom; ++y) {
    for (int64_t x = window.left; x < window.right; ++x) visit(window.first + y * window.grid_width + x, y, x);
  }
}

}  // namespace

std::vector<std::vector<int64_t>> merged_rows_of_ranks(const VisionConfig& config, const VisionUnitLayout& layout) {
  std::vector<std::vector<int64_t>> rows(layout.window_cuts.size() - 1);
  each_placed_window(config, layout, [&](size_t rank, const Window& window) {
    each_token(window, [&](int64_t row, int64_t, int64_t) { rows[rank].push_back(row); });
  });
  return rows;
}

std::vector<int64_t> cut_windows(const VisionConfig& config, const std::vector<IndexedImage>& images, int sp) {
  int64_t total = 0, windows = 0;
  for (const IndexedImage& image : images) {
    total += image.tokens(config.merge_size);
    windows += window_count(config, image);
  }
  std::vector<int64_t> cuts(static_cast<size_t>(sp) + 1, windows);
  cuts[0] = 0;
  // Cut r lies where the tokens before it come nearest to r / sp of all; a window goes to the side that its middle lies
  // on.
  int64_t before = 0;
  int r = 1;
  each_window(config, images, [&](int64_t number, const Window& window) {
    while (r < sp && (2 * before + window.tokens()) * sp > 2 * total * r) cuts[static_cast<size_t>(r++)] = number;
    before += window.tokens();
  });
  return cuts;
}

std::vector<int64_t> local_patches(const VisionConfig& config, const VisionUnitLayout& layout, int rank) {
  const int64_t block = config.merge_size * config.merge_size;
  std::vector<int64_t> patches;
  each_placed_window(config, layout, [&](size_t holder, const Window& window) {
    if (holder != static_cast<size_t>(rank)) return;
    each_token(window, [&](int64_t row, int64_t, int64_t) {
      for (int64_t i = 0; i < block; ++i) patches.push_back(row * block + i);
    });
  });
  return patches;
}

VisionRankPlan plan_vision_rank(const VisionConfig& config, const VisionUnitLayout& layout, int rank) {
  const int64_t merge = config.merge_size, block = merge * merge;
  VisionRankPlan plan;
  plan.rank_rows.assign(layout.window_cuts.size() - 1, 0);
  plan.window_starts = {0};
  plan.frame_starts = {0};
  for (const IndexedImage& image : layout.images) {
    for (int64_t t = 0; t < image.t; ++t)
      plan.frame_starts.push_back(plan.frame_starts.back() + int64_t{image.h} * image.w);
  }
  each_placed_window(config, layout, [&](size_t holder, const Window& window) {
    plan.rank_rows[holder] += window.tokens() * block;
    if (holder != static_cast<size_t>(rank)) return;
    plan.window_starts.push_back(plan.window_starts.back() + window.tokens() * block);
    each_token(window, [&](int64_t, int64_t y, int64_t x) {
      for (int64_t i = 0; i < block; ++i) {
        plan.rows.push_back(static_cast<int32_t>(y * merge + i / merge));
        plan.columns.push_back(static_cast<int32_t>(x * merge + i % merge));
      }
    });
  });
  return plan;
}

}  // namespace troupe
