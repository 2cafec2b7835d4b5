#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// The compression that the bytes begin with ("gzip"); empty: none that is known.
std::string_view compression_of(std::string_view bytes);

/// What a file of records is by its first bytes when it is of a kind that is not read ("gzip-compressed", "UTF-16
/// text", "an Arrow file"); empty: nothing speaks against JSON, JSON lines, tar or Parquet.
std::string foreign_kind(std::string_view bytes);

}  // namespace troupe
