#pragma once

#include <memory>
#include <set>
#include <string>

#include "actors/parquet/row_file.h"
#include "base/mapped_file.h"

namespace troupe {

/// What the module gives: `out` becomes the open file, or the reason without its path.
using OpenParquetRows = void(const std::shared_ptr<const MappedFile>& file, const std::set<std::string>& names,
                             Result<std::shared_ptr<const RowFile>>& out);
/// Version and commit of the Arrow that is loaded.
using ParquetLibrary = void(std::string& out);
inline constexpr char kParquetModule[] = "libtroupe_parquet.so", kParquetEntry[] = "troupe_open_parquet_rows",
                      kParquetLibraryEntry[] = "troupe_parquet_library";

}  // namespace troupe

/// The module's only symbols.
extern "C" troupe::OpenParquetRows troupe_open_parquet_rows;
extern "C" troupe::ParquetLibrary troupe_parquet_library;
