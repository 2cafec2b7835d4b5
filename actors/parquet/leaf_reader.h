#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "actors/parquet/column_chunk.h"

namespace troupe {

/// What one row has in one column: a pair of levels for each value, each null, and each list that ends before one.
struct LeafRow {
  std::vector<int16_t> definitions, repetitions;
  std::vector<nlohmann::json> values;  // those that are defined
  int64_t bytes = 0;                   // of texts and bytes among them
  void clear();
};

/// Goes through the rows of a chunk from a page that begins with one. Throws what Arrow throws, and ParquetException
/// for levels that no writer makes and for a row that is out of all proportion.
class LeafReader {
 public:
  static constexpr size_t kMostValues = size_t{1} << 20;     // of a row
  static constexpr int64_t kMostBytes = int64_t{256} << 20;  // of a row

  static std::unique_ptr<LeafReader> make(const ColumnChunk& chunk, std::unique_ptr<ChunkPager> pages);
  virtual ~LeafReader() = default;
  /// Whether another row begins here; false at the chunk's end.
  virtual bool at_row() = 0;
  /// While at_row() was true: whether the row is its page's first and nothing else stands before it there.
  virtual bool at_page_begin() const = 0;
  /// Reads the row, or with null passes over it. Only where at_row() is true.
  virtual void next_row(LeafRow* out) = 0;
};

}  // namespace troupe
