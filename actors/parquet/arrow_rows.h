#pragma once

#include <arrow/memory_pool.h>
#include <parquet/file_reader.h>
#include <parquet/page_index.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/parquet/column_chunk.h"
#include "actors/parquet/row_file.h"
#include "actors/parquet/row_shape.h"
#include "base/mapped_file.h"

namespace troupe {

/// A Parquet file by Arrow's page readers. Of a group of rows it remembers where the pages begin, once somebody has
/// jumped into it. Thread-safe.
class ArrowRows final : public RowFile {
 public:
  /// InvalidArgument, or ResourceExhausted for want of memory, with the reason, which is to follow the file's name.
  static Result<std::shared_ptr<const RowFile>> open(std::shared_ptr<const MappedFile> file,
                                                     const std::set<std::string>& names);

  const std::vector<int64_t>& group_begins() const override { return group_begins_; }
  std::unique_ptr<RowCursor> cursor(int group) const override;

  const RowShapes& shapes() const { return shapes_; }
  /// Where to begin in a leaf's chunk. Throws what Arrow throws, for the same row always the same.
  PagePlaces::Place place(int group, size_t leaf, int64_t row_in_group, std::optional<size_t>& dictionary) const;
  /// Throws what Arrow throws.
  ColumnChunk chunk(int group, size_t leaf) const;

 private:
  explicit ArrowRows(std::shared_ptr<const MappedFile> file);
  Status read_footer(const std::set<std::string>& names);
  Status check_codecs() const;
  Status count_rows();
  std::shared_ptr<parquet::OffsetIndex> offset_index(int group, size_t leaf) const;

  std::shared_ptr<const MappedFile> file_;  // shared with the sources
  mutable arrow::CappedMemoryPool memory_;
  parquet::ReaderProperties properties_;
  std::unique_ptr<parquet::ParquetFileReader> reader_;
  std::shared_ptr<parquet::FileMetaData> footer_;  // shared as Arrow hands it out
  RowShapes shapes_;
  std::vector<int64_t> group_begins_;
  mutable std::mutex places_mutex_;
  mutable std::vector<std::vector<std::optional<PagePlaces>>>
      places_;  // by group and leaf, none until asked for; under places_mutex_
};

}  // namespace troupe
