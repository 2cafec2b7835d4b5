#pragma once

#include <arrow/io/interfaces.h>
#include <parquet/column_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/parquet/row_shape.h"

/// Pages of one column in one group of rows. What these files call throws what Arrow throws; arrow_rows.cpp catches.
namespace troupe {

struct ColumnChunk {
  const parquet::ColumnDescriptor* column = nullptr;
  const parquet::ReaderProperties* properties = nullptr;
  LeafKind kind = LeafKind::kText;
  std::string_view bytes;            // of its pages; the file stays mapped
  int64_t begin = 0, values = 0;     // begin: offset of the bytes in the file
  std::optional<size_t> dictionary;  // where in `bytes` its page lies
  parquet::Compression::type codec = parquet::Compression::UNCOMPRESSED;
  bool always_compressed = false;  // PageReader::Open says what that is
};

/// The chunk of a column; throws when it does not lie within the file.
ColumnChunk chunk_of(const parquet::FileMetaData& file, const parquet::ColumnChunkMetaData& chunk,
                     std::string_view bytes);

/// Hands out a chunk's pages from one of them on, the dictionary first.
class ChunkPager final : public parquet::PageReader {
 public:
  /// `from`: where in the chunk's bytes a page begins.
  ChunkPager(const ColumnChunk& chunk, size_t from, std::optional<size_t> dictionary);
  std::shared_ptr<parquet::Page> NextPage() override;
  void set_max_page_header_size(uint32_t size) override { pages_->set_max_page_header_size(size); }
  /// Where the page that was handed out last begins, and how many were.
  size_t page_begin() const { return page_begin_; }
  int64_t handed_out() const { return handed_out_; }
  /// Where a dictionary was met among the pages; writers exist that do not say where it is.
  std::optional<size_t> met_dictionary() const { return met_dictionary_; }

 private:
  std::unique_ptr<parquet::PageReader> dictionary_, pages_;
  std::shared_ptr<arrow::io::InputStream> stream_;  // shared with pages_
  size_t from_, page_begin_ = 0;
  int64_t handed_out_ = 0;
  std::optional<size_t> met_dictionary_;
};

/// Where one can begin to read: pages that begin with a row.
struct PagePlaces {
  struct Place {
    size_t begin;  // in the chunk's bytes
    int64_t row;   // in the group
  };
  std::vector<Place> places;
  std::optional<size_t> dictionary;
  int64_t reached = 0;  // rows before this one can be reached, others cannot, and `failure` says why
  std::string failure;
  /// The last place not behind the row, which was reached. Throws the failure for another.
  const Place& before(int64_t row) const;
};

/// By the chunk's offset index where it is sound (null: there is none), else by one pass over the chunk, which ends
/// where the chunk is damaged or lacks rows. Throws for want of memory alone.
PagePlaces find_places(const ColumnChunk& chunk, int64_t rows, const parquet::OffsetIndex* index);

}  // namespace troupe
