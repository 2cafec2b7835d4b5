#include "actors/parquet/row_cursor.h"

#include <parquet/exception.h>

#include "actors/parquet/arrow_rows.h"
#include "actors/parquet/out_of_memory.h"
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
      read_leaf(i, in_group);
      const size_t held = held_[i].values.size() + held_[i].definitions.size();
      read->bytes += held_[i].bytes + static_cast<int64_t>(held * sizeof(nlohmann::json));
    }
    auto object = assemble_row(file_.shapes(), held_);
    if (!object) return data_loss("cannot be read: the levels of its columns contradict each other");
    read->object = std::move(*object);
    return std::shared_ptr<const Row>(std::move(read));
  } catch (const std::exception& e) {
    if (is_out_of_memory(e))
      return make_error(ErrorCode::kResourceExhausted,
                        "cannot be read for want of memory: " + printable(e.what(), false));
    return data_loss("cannot be read: " + printable(e.what(), false));
  }
}

void ArrowRowCursor::read_leaf(size_t leaf, int64_t row) {
  Leaf& at = leaves_[leaf];
  if (row >= at.next && row - at.next <= kStroll) {
    try {
      if (at.reader == nullptr) open_at(leaf, {0, 0}, std::nullopt);
      return walk_to(leaf, row);
    } catch (const std::exception&) {
      at = {};  // what lies between does not matter: as for a cursor from elsewhere, the row's own place decides
    }
  }
  jump_to(leaf, row);
  walk_to(leaf, row);
}

void ArrowRowCursor::jump_to(size_t leaf, int64_t row) {
  Leaf& at = leaves_[leaf];
  std::optional<size_t> dictionary;
  const auto place = file_.place(group_, leaf, row, dictionary);
  if (at.reader == nullptr || row < at.next || place.row > at.next) open_at(leaf, place, dictionary);
}

void ArrowRowCursor::open_at(size_t leaf, const PagePlaces::Place& place, std::optional<size_t> dictionary) {
  const ColumnChunk chunk = file_.chunk(group_, leaf);
  leaves_[leaf].reader = LeafReader::make(chunk, std::make_unique<ChunkPager>(chunk, place.begin, dictionary));
  leaves_[leaf].next = place.row;
}

void ArrowRowCursor::walk_to(size_t leaf, int64_t row) {
  Leaf& at = leaves_[leaf];
  for (; at.reader->at_row(); ++at.next) {
    const bool there = at.next == row;
    held_[leaf].clear();
    at.reader->next_row(there ? &held_[leaf] : nullptr);
    if (!there) continue;
    const auto group = static_cast<size_t>(group_);
    if (++at.next == file_.group_begins()[group + 1] - file_.group_begins()[group] && at.reader->at_row())
      throw parquet::ParquetException("a column chunk has more rows than its group");
    return;
  }
  throw parquet::ParquetException("column '" + file_.shapes().leaves[leaf].name + "' ends before the row");
}

}  // namespace troupe
