#include "actors/parquet/row_pool.h"

#include <algorithm>

namespace troupe {

Result<std::shared_ptr<const Row>> RowPool::row(int file, int64_t row) {
  const RowFile& rows = *files_[static_cast<size_t>(file)];
  if (row < 0 || row >= rows.rows())
    return data_loss("there is no row " + std::to_string(row + 1) + "; the file has " + std::to_string(rows.rows()));
  if (auto known = find(file, row)) return known;
  Place place = take_cursor(file, row);
  TROUPE_ASSIGN(auto read, place.cursor->read(row));
  place.next = row + 1;
  keep(std::move(place), row, read);
  return read;
}

std::shared_ptr<const Row> RowPool::find(int file, int64_t row) {
  const std::lock_guard lock(mutex_);
  for (const Kept& kept : kept_)
    if (kept.file == file && kept.number == row) return kept.row;
  return nullptr;
}

RowPool::Place RowPool::take_cursor(int file, int64_t row) {
  const RowFile& rows = *files_[static_cast<size_t>(file)];
  const auto& begins = rows.group_begins();
  const int group = static_cast<int>(std::upper_bound(begins.begin(), begins.end(), row) - begins.begin()) - 1;
  {
    const std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto at = idle_.begin(); at != idle_.end(); ++at) {
      if (at->file != file || at->group != group || at->next > row) continue;
      if (best == idle_.end() || at->next > best->next) best = at;
    }
    if (best != idle_.end()) {
      Place found = std::move(*best);
      idle_.erase(best);
      return found;
    }
  }
  return {file, group, begins[static_cast<size_t>(group)], rows.cursor(group)};
}

void RowPool::keep(Place place, int64_t number, const std::shared_ptr<const Row>& row) {
  std::list<Place> dropped;  // destroyed behind the lock, as pages are big
  const std::lock_guard lock(mutex_);
  kept_.push_back({place.file, number, row});
  kept_bytes_ += row->bytes;
  while (kept_.size() > kMostRows || (kept_bytes_ > kKeptBytes && !kept_.empty())) {
    kept_bytes_ -= kept_.front().row->bytes;
    kept_.pop_front();
  }
  idle_.push_back(std::move(place));
  while (idle_.size() > kMostCursors) dropped.splice(dropped.end(), idle_, idle_.begin());
}

}  // namespace troupe
