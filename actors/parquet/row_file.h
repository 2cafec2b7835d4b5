#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.h"

namespace troupe {

/// A row of a columnar file as the object that a record is read from: columns and fields that are null are left out,
/// and bytes stay bytes (nlohmann's binary values).
struct Row {
  nlohmann::json object;
  int64_t bytes = 0;  // of memory, about
};

/// Reads rows of one group of a file. Rows that come one after the other cost what lies between them; a jump costs a
/// page of each column. One thread only; the file outlives it.
class RowCursor {
 public:
  virtual ~RowCursor() = default;
  /// A row of the group by its number in the file. DataLoss with the reason, for the same row the same whatever was
  /// read before, or ResourceExhausted for want of memory; the cursor is of no use then.
  virtual Result<std::shared_ptr<const Row>> read(int64_t row) = 0;
};

/// A file whose records are rows in groups. Immutable and thread-safe.
class RowFile {
 public:
  virtual ~RowFile() = default;
  /// The first row of each group, ascending, and behind them the number of rows.
  virtual const std::vector<int64_t>& group_begins() const = 0;
  virtual std::unique_ptr<RowCursor> cursor(int group) const = 0;
  int64_t rows() const { return group_begins().back(); }
};

}  // namespace troupe
