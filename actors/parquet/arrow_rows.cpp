#include "actors/parquet/arrow_rows.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <parquet/exception.h>

#include "actors/parquet/out_of_memory.h"
#include "actors/parquet/row_cursor.h"
#include "base/printable_text.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic = "PAR1", kEncryptedMagic = "PARE";
constexpr size_t kLeastBytes = 12;  // magic, footer's length, magic
/// What one file's readers may hold at once: a page may have 2 GiB.
constexpr int64_t kMostMemory = int64_t{8} << 30;

parquet::ReaderProperties properties(arrow::MemoryPool* memory) {
  parquet::ReaderProperties made(memory);
  made.set_page_checksum_verification(true);
  return made;
}

Status check_ends(std::string_view bytes) {
  if (bytes.size() >= kLeastBytes && bytes.ends_with(kMagic)) return {};
  if (bytes.ends_with(kEncryptedMagic)) return invalid_argument("is an encrypted Parquet file, which is not read");
  return invalid_argument("is a Parquet file that is cut off: its footer is missing");
}

}  // namespace

ArrowRows::ArrowRows(std::shared_ptr<const MappedFile> file)
    : file_(std::move(file)), memory_(arrow::system_memory_pool(), kMostMemory), properties_(properties(&memory_)) {}

Result<std::shared_ptr<const RowFile>> ArrowRows::open(std::shared_ptr<const MappedFile> file,
                                                       const std::set<std::string>& names) {
  TROUPE_RETURN_IF_ERROR(check_ends(file->bytes()));
  std::shared_ptr<ArrowRows> rows(new ArrowRows(std::move(file)));
  try {
    TROUPE_RETURN_IF_ERROR(rows->read_footer(names));
  } catch (const std::exception& e) {
    if (is_out_of_memory(e))
      return make_error(ErrorCode::kResourceExhausted,
                        "cannot be opened for want of memory: " + printable(e.what(), false));
    return invalid_argument("is a Parquet file whose footer is damaged: " + printable(e.what(), false));
  }
  return std::shared_ptr<const RowFile>(std::move(rows));
}

Status ArrowRows::read_footer(const std::set<std::string>& names) {
  const auto bytes = file_->bytes();
  const auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                      static_cast<int64_t>(bytes.size()));
  reader_ = parquet::ParquetFileReader::Open(std::make_shared<arrow::io::BufferReader>(buffer), properties_);
  footer_ = reader_->metadata();
  if (footer_->is_encryption_algorithm_set())
    return invalid_argument("is an encrypted Parquet file, which is not read");
  TROUPE_ASSIGN(shapes_, shapes_of(*footer_->schema(), names));
  TROUPE_RETURN_IF_ERROR(count_rows());
  return check_codecs();
}

Status ArrowRows::count_rows() {
  group_begins_.push_back(0);
  for (int g = 0; g < footer_->num_row_groups(); ++g) {
    const int64_t rows = footer_->RowGroup(g)->num_rows();
    if (rows < 0 || rows > footer_->num_rows() - group_begins_.back())
      return invalid_argument(
          "is a Parquet file whose footer is damaged: its groups have other numbers of rows than it");
    group_begins_.push_back(group_begins_.back() + rows);
  }
  if (group_begins_.back() != footer_->num_rows())
    return invalid_argument("is a Parquet file whose footer is damaged: its groups have other numbers of rows than it");
  places_.resize(static_cast<size_t>(footer_->num_row_groups()));
  return {};
}

Status ArrowRows::check_codecs() const {
  for (int g = 0; g < footer_->num_row_groups(); ++g) {
    const auto group = footer_->RowGroup(g);
    for (const RowLeaf& leaf : shapes_.leaves) {
      const auto codec = group->ColumnChunk(leaf.column)->compression();
      if (parquet::IsCodecSupported(codec)) continue;
      return invalid_argument("has column '" + printable(leaf.name, false) + "' compressed with " +
                              arrow::util::Codec::GetCodecAsString(codec) +
                              ", which is not read; valid: snappy, zstd, gzip, brotli, lz4 or none");
    }
  }
  return {};
}

std::unique_ptr<RowCursor> ArrowRows::cursor(int group) const { return std::make_unique<ArrowRowCursor>(*this, group); }

ColumnChunk ArrowRows::chunk(int group, size_t leaf) const {
  const RowLeaf& read = shapes_.leaves[leaf];
  const auto metadata = footer_->RowGroup(group)->ColumnChunk(read.column);
  ColumnChunk chunk = chunk_of(*footer_, *metadata, file_->bytes());
  chunk.column = footer_->schema()->Column(read.column);
  chunk.properties = &properties_;
  chunk.kind = read.kind;
  return chunk;
}

std::shared_ptr<parquet::OffsetIndex> ArrowRows::offset_index(int group, size_t leaf) const {
  const int column = shapes_.leaves[leaf].column;
  if (!footer_->RowGroup(group)->ColumnChunk(column)->GetOffsetIndexLocation()) return nullptr;
  try {
    const auto pages = reader_->GetPageIndexReader();
    const auto of_group = pages != nullptr ? pages->RowGroup(group) : nullptr;
    return of_group != nullptr ? of_group->GetOffsetIndex(column) : nullptr;
  } catch (const std::exception& e) {
    if (is_out_of_memory(e)) throw;
    return nullptr;  // a broken index is none
  }
}

PagePlaces::Place ArrowRows::place(int group, size_t leaf, int64_t row, std::optional<size_t>& dictionary) const {
  const std::lock_guard lock(places_mutex_);  // others wait rather than go through the same group too
  auto& of_group = places_[static_cast<size_t>(group)];
  of_group.resize(shapes_.leaves.size());
  auto& places = of_group[leaf];
  if (!places) {
    const auto begin = static_cast<size_t>(group);
    places = find_places(chunk(group, leaf), group_begins_[begin + 1] - group_begins_[begin],
                         offset_index(group, leaf).get());
  }
  dictionary = places->dictionary;
  return places->before(row);
}

}  // namespace troupe
