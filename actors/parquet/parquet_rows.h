#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "actors/parquet/row_file.h"
#include "base/mapped_file.h"
#include "base/result.h"

namespace troupe {

/// Whether the bytes begin as a Parquet file does.
inline bool is_parquet(std::string_view bytes) { return bytes.starts_with("PAR1"); }

/// A Parquet file that is open for reading.
struct ParquetRows {
  std::shared_ptr<const RowFile> file;  // shared by whoever reads its rows
  uint64_t reader = 0;                  // hash of the code that turns columns into objects, Arrow's version included
};

/// Opens a Parquet file by its footer; its rows are read later. `names`: the keys that a record is read from. Their
/// columns are read, and those with text or bytes in them; a column or field among them of a type that is not read is
/// refused, others are left out. InvalidArgument with path and reason: cut off, a footer that is damaged, encrypted, a
/// codec or type that is not read, a program that was built without Parquet. Cost: the footer.
Result<ParquetRows> open_parquet(const std::shared_ptr<const MappedFile>& file, const std::string& path,
                                 const std::set<std::string>& names);

}  // namespace troupe
