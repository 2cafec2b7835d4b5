#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/parquet/row_file.h"

namespace troupe {

/// Any row of any of some files, with what makes rows in order and a second look at a row cheap: cursors that stand
/// where somebody left off, and the rows that were read last. Memory is that of kMostCursors cursors beside those in
/// use, and kKeptBytes of rows, however many files there are. Thread-safe.
class RowPool {
 public:
  static constexpr size_t kMostCursors = 8, kMostRows = 256;
  static constexpr int64_t kKeptBytes = int64_t{64} << 20;

  /// Null for a source that is no such file.
  explicit RowPool(std::vector<std::shared_ptr<const RowFile>> files) : files_(std::move(files)) {}
  /// DataLoss when the file has no such row or it cannot be read, ResourceExhausted for want of memory.
  Result<std::shared_ptr<const Row>> row(int file, int64_t row);

 private:
  struct Place {
    int file = 0, group = 0;
    int64_t next = 0;  // the row behind the one that was read last
    std::unique_ptr<RowCursor> cursor;
  };
  struct Kept {
    int file;
    int64_t number;
    std::shared_ptr<const Row> row;  // shared with whoever asked for it
  };
  std::shared_ptr<const Row> find(int file, int64_t row);
  /// The cursor that has the shortest way to the row, or a new one.
  Place take_cursor(int file, int64_t row);
  void keep(Place place, int64_t number, const std::shared_ptr<const Row>& row);

  std::vector<std::shared_ptr<const RowFile>> files_;  // shared with whoever opened them
  std::mutex mutex_;
  std::list<Place> idle_;  // used longest ago first; under mutex_, like what follows
  std::list<Kept> kept_;
  int64_t kept_bytes_ = 0;
};

}  // namespace troupe
