#include "actors/parquet/row_cursor.h"

#include <parquet/exception.h>

#include "actors/parquet/arrow_rows.h"
#include "actors/parquet/row_assembly.h"
#include "base/printable_text.h"

namespace troupe {
namespace {

/// So many rows are walked over before it is asked where pages begin, which may take a pass over the group.
constexpr int64_t kStroll = 32;

}  // namespace

ArrowRowCursor::ArrowRowCursor(const ArrowRows& file, int group)
    : file_(file), group_(group), leaves_(file.shapes().leaves.size()), held_(leaves_.size()) {}

Result<std::shared_ptr<const Row>> ArrowRowCursor::read(int64_t row) {
  const int64_t in_group = row - file_.group_begins()[static_cast<size_t>(group_)];
  try {
    auto read = std::make_shared<Row>();
    for (size_t i = 0; i < leaves_.size(); ++i) {
      bring_to(i, in_group);
      held_[i].clear();
      leaves_[i].reader->next_row(&held_[i]);
      ++leaves_[i].next;
      read->bytes += held_[i].bytes;
    }
    auto object = assemble_row(file_.shapes(), held_);
    if (!object) return data_loss("cannot be read: the levels of its columns contradict each other");
    read->object = std::move(*object);
    return std::shared_ptr<const Row>(std::move(read));
  } catch (const std::exception& e) {
    return data_loss("cannot be read: " + printable(e.what(), false));
  }
}

void ArrowRowCursor::bring_to(size_t leaf, int64_t row) {
  Leaf& at = leaves_[leaf];
  if (row < at.next || row - at.next > kStroll) {
    std::optional<size_t> dictionary;
    const auto place = file_.place(group_, leaf, row, dictionary);
    if (at.reader == nullptr || row < at.next || place.row > at.next) {
      const ColumnChunk chunk = file_.chunk(group_, leaf);
      at.reader = LeafReader::make(chunk, std::make_unique<ChunkPager>(chunk, place.begin, dictionary));
      at.next = place.row;
    }
  } else if (at.reader == nullptr) {
    const ColumnChunk chunk = file_.chunk(group_, leaf);
    at.reader = LeafReader::make(chunk, std::make_unique<ChunkPager>(chunk, 0, std::nullopt));
  }
  while (at.reader->at_row()) {
    if (at.next == row) return;
    at.reader->next_row(nullptr);
    ++at.next;
  }
  throw parquet::ParquetException("column '" + file_.shapes().leaves[leaf].name + "' ends before the row");
}

}  // namespace troupe
