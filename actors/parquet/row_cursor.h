#pragma once

#include <memory>
#include <vector>

#include "actors/parquet/leaf_reader.h"
#include "actors/parquet/row_file.h"

namespace troupe {

class ArrowRows;

/// The readers of a group's columns, each as far as it has come. One thread only; the file outlives it.
class ArrowRowCursor final : public RowCursor {
 public:
  ArrowRowCursor(const ArrowRows& file, int group);
  Result<std::shared_ptr<const Row>> read(int64_t row) override;

 private:
  struct Leaf {
    std::unique_ptr<LeafReader> reader;  // null: nothing was asked for yet
    int64_t next = 0;                    // row in the group
  };
  void open_at(size_t leaf, const PagePlaces::Place& place, std::optional<size_t> dictionary);
  /// What the row has in the column goes into held_.
  void read_leaf(size_t leaf, int64_t row);
  void jump_to(size_t leaf, int64_t row);
  void walk_to(size_t leaf, int64_t row);

  const ArrowRows& file_;
  int group_;
  std::vector<Leaf> leaves_;
  std::vector<LeafRow> held_;
};

}  // namespace troupe
