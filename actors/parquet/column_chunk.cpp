#include "actors/parquet/column_chunk.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <parquet/column_page.h>
#include <parquet/exception.h>
#include <parquet/page_index.h>

#include <algorithm>

#include "actors/parquet/leaf_reader.h"
#include "actors/parquet/out_of_memory.h"

namespace troupe {
namespace {

std::shared_ptr<arrow::io::InputStream> stream_of(const ColumnChunk& chunk, size_t from) {
  const auto bytes = chunk.bytes.substr(from);
  return std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size())));
}

std::unique_ptr<parquet::PageReader> pages_of(const ColumnChunk& chunk,
                                              std::shared_ptr<arrow::io::InputStream> stream) {
  return parquet::PageReader::Open(std::move(stream), chunk.values, chunk.codec, *chunk.properties,
                                   chunk.always_compressed);
}

/// Nothing when the index cannot be what was written.
std::optional<PagePlaces> places_of_index(const ColumnChunk& chunk, int64_t rows, const parquet::OffsetIndex& index) {
  PagePlaces found;
  found.dictionary = chunk.dictionary;
  for (const auto& page : index.page_locations()) {
    const int64_t begin = page.offset - chunk.begin;
    const bool first = found.places.empty();
    if (begin < 0 || begin >= static_cast<int64_t>(chunk.bytes.size()) || page.first_row_index >= rows) return {};
    if (first ? page.first_row_index != 0 : page.first_row_index < found.places.back().row) return {};
    if (!first && static_cast<size_t>(begin) <= found.places.back().begin) return {};
    found.places.push_back({static_cast<size_t>(begin), page.first_row_index});
  }
  if (found.places.empty()) return {};
  // Footers exist that do not name the dictionary; it comes before the pages with values.
  if (!found.dictionary && found.places[0].begin > 0) found.dictionary = 0;
  found.reached = rows;
  return found;
}

/// Goes through the chunk as far as it can be read; `found` holds what was found when it throws.
void walk(const ColumnChunk& chunk, int64_t rows, PagePlaces& found) {
  auto pager = std::make_unique<ChunkPager>(chunk, 0, std::nullopt);
  const ChunkPager& pages = *pager;  // the reader's
  const auto reader = LeafReader::make(chunk, std::move(pager));
  for (; found.reached < rows && reader->at_row(); ++found.reached) {
    found.dictionary = pages.met_dictionary();
    if (reader->at_page_begin()) found.places.push_back({pages.page_begin(), found.reached});
    reader->next_row(nullptr);
  }
  if (found.reached < rows) throw parquet::ParquetException("a column chunk has fewer rows than its group");
}

}  // namespace

ColumnChunk chunk_of(const parquet::FileMetaData& file, const parquet::ColumnChunkMetaData& chunk,
                     std::string_view bytes) {
  ColumnChunk out;
  int64_t begin = chunk.data_page_offset();
  const int64_t dictionary = chunk.has_dictionary_page() ? chunk.dictionary_page_offset() : 0;
  const bool apart = dictionary > 0 && dictionary < begin;
  if (apart) begin = dictionary;
  const auto size = static_cast<int64_t>(bytes.size());
  if (begin < 0 || begin > size || chunk.total_compressed_size() < 0 || chunk.total_compressed_size() > size - begin)
    throw parquet::ParquetException("a column chunk lies outside of the file");
  out.begin = begin;
  out.bytes = bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(chunk.total_compressed_size()));
  out.values = chunk.num_values();
  out.codec = chunk.compression();
  if (apart) out.dictionary = 0;
  out.always_compressed =
      file.writer_version().VersionLt(parquet::ApplicationVersion::PARQUET_CPP_10353_FIXED_VERSION());
  return out;
}

ChunkPager::ChunkPager(const ColumnChunk& chunk, size_t from, std::optional<size_t> dictionary)
    : stream_(stream_of(chunk, from)), from_(from) {
  pages_ = pages_of(chunk, stream_);
  if (dictionary && *dictionary < from) dictionary_ = pages_of(chunk, stream_of(chunk, *dictionary));
}

std::shared_ptr<parquet::Page> ChunkPager::NextPage() {
  if (dictionary_ != nullptr) {
    auto page = dictionary_->NextPage();
    dictionary_.reset();
    if (page == nullptr || page->type() != parquet::PageType::DICTIONARY_PAGE)
      throw parquet::ParquetException("there is no dictionary where one is due");
    return page;
  }
  const size_t begin = from_ + static_cast<size_t>(stream_->Tell().ValueOr(0));
  auto page = pages_->NextPage();
  if (page == nullptr) return page;
  if (page->type() == parquet::PageType::DICTIONARY_PAGE) met_dictionary_ = begin;
  page_begin_ = begin;
  ++handed_out_;
  return page;
}

const PagePlaces::Place& PagePlaces::before(int64_t row) const {
  if (row >= reached) throw parquet::ParquetException(failure);
  const auto behind =
      std::upper_bound(places.begin(), places.end(), row, [](int64_t r, const Place& place) { return r < place.row; });
  return *std::prev(behind);  // the first place is row 0
}

PagePlaces find_places(const ColumnChunk& chunk, int64_t rows, const parquet::OffsetIndex* index) {
  if (index != nullptr)
    if (auto found = places_of_index(chunk, rows, *index)) return std::move(*found);
  PagePlaces found;
  try {
    walk(chunk, rows, found);
  } catch (const std::exception& e) {
    if (is_out_of_memory(e)) throw;  // which says nothing of the chunk
    found.failure = e.what();
  }
  return found;
}

}  // namespace troupe
