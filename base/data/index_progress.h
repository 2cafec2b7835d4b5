#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// How far a look at all records has come. Pure functions.
namespace troupe {

struct IndexProgress {
  int64_t records = 0;                      // looked at, those that a cache knew included
  int64_t done_bytes = 0, total_bytes = 0;  // of the sources
  int64_t blocks = 0, cached_blocks = 0;    // done; of these, those that a cache knew
  double seconds_left = -1;                 // below 0: not known yet
};

/// The time that `left_bytes` will take when `read_bytes` took `seconds`; -1 before there is anything to judge by.
double seconds_left(double seconds, int64_t read_bytes, int64_t left_bytes);

/// For a person: "45 % of the data, 450000 records, about 2 min left".
std::string progress_text(const IndexProgress& progress);
/// What a line for a person begins with among those for a program.
inline constexpr const char* kWarningLine = "warning ";
/// What a line begins with that names whose records are looked at from here on: "sources eval.sources".
inline constexpr const char* kSourcesLine = "sources ";
/// For a program: "progress RECORDS DONE_BYTES TOTAL_BYTES SECONDS_LEFT", and back; nothing for any other line.
std::string progress_line(const IndexProgress& progress);
std::optional<IndexProgress> parse_progress_line(const std::string& line);

}  // namespace troupe
