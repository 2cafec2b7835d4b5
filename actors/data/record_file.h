#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Where one record lies in its file. The bytes are a JSON value, as far as its brackets tell.
struct RecordSpan {
  int64_t offset = 0, length = 0;
  int64_t line = 0;    // of its first byte, from 1; in an archive its sample's number
  int64_t column = 1;  // of its first byte, from 1
};

struct RecordFile {
  std::vector<RecordSpan> records;
  /// The place where the structure around the records breaks (a trailing comma, an array that is not closed, ...).
  struct Fault {
    int64_t line = 0, column = 1;
    std::string reason;
  };
  std::optional<Fault> fault;
};

/// Finds the records of a JSON array or of JSON lines, told apart by the first character and not by the file's name. A
/// byte-order mark, CRLF line ends and blank lines are skipped. Cost: one pass over the bytes.
RecordFile find_records(std::string_view bytes);

}  // namespace troupe
