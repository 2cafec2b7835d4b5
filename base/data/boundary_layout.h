#pragma once

#include <cstdint>
#include <vector>

#include "base/data/batch_plan.h"
#include "base/data/vision_layout.h"
#include "base/layout/row_layout.h"
#include "base/mesh/mesh.h"

/// The two ends of the vision boundary as row layouts, derived from a step plan by every rank alike. Row ids are the
/// step's merged rows in reading order (StepImage::first_row + row of the image in raster order).
namespace troupe {

/// The images of one vision unit on one lane, with its windows cut over sp.
VisionUnitLayout vision_unit_layout(const VisionConfig& config, const StepPlan& plan, int lane, int unit, int sp);

/// Rows of vision unit `unit` over all ranks of the vision mesh (dp x sp), in local window order.
RowLayout producer_layout(const VisionConfig& config, const StepPlan& plan, int unit, const Mesh& vision);

/// Where the vision rows of one text unit stand on one lane.
struct ConsumerRows {
  std::vector<int64_t> rows;       // [T] row ids, in sequence order
  std::vector<int64_t> positions;  // [T] rows of the unit's sequence (samples concatenated) that they fill, ascending
  int64_t tokens = 0;              // S
};
ConsumerRows consumer_rows(const StepPlan& plan, const SampleIndex& index, int64_t merge, int lane, int unit);

/// The piece of ConsumerRows that tp rank `tp_rank` receives: [first, last) of its rows. Without tensor-sequence
/// parallelism a stripe of the rows; with it the rows whose positions lie in the rank's cut of the padded sequence.
struct RowRange {
  int64_t first = 0, last = 0;
};
RowRange consumer_range(const ConsumerRows& rows, int tp, int tp_rank, bool tp_sequence);

/// Rows of text unit `unit` over all ranks of the text mesh (dp x tp): exactly one receiver, who is also the gradient's
/// owner, for each row.
RowLayout consumer_layout(const StepPlan& plan, const SampleIndex& index, int64_t merge, int unit, const Mesh& text,
                          bool tp_sequence);

/// A digest of what a message carries: sample numbers and row ids, in order.
uint64_t rows_digest(const StepPlan& plan, const std::vector<int64_t>& row_ids);

}  // namespace troupe
