#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Where one record lies in its file. The bytes are a JSON value, as far as its brackets tell. Of a table's row
/// `offset` is its number, from 0, and `length` 1.
struct RecordSpan {
  int64_t offset = 0, length = 0;
  int64_t line = 0;     // of its first byte, from 1; in an archive its sample's number, in a table its row's
  int64_t column = 1;   // of its first byte, from 1
  int64_t element = 0;  // in an array its number, from 1: many may share a line
};

/// A place where the structure around the records breaks (a trailing comma, an array that is not closed, ...).
struct RecordFault {
  int64_t line = 0, column = 1;
  std::string reason;
};

/// How records may be laid out, for messages.
inline constexpr std::string_view kLinesOrArray =
    "valid: one record a line without commas between, or all records in one array [..., ...]";

/// Finds the records of a JSON array or of JSON lines one after the other, told apart by the first character and not by
/// the file's name. A byte-order mark, CRLF line ends and blank lines are skipped. Cost: one pass over the bytes;
/// nothing of what is behind is kept. One thread only; the bytes outlive it.
class RecordScanner {
 public:
  explicit RecordScanner(std::string_view bytes);
  /// The next record; false at the end of the file or where it breaks.
  bool next(RecordSpan& span);
  /// Once `next` was false: the break, if there is one.
  const std::optional<RecordFault>& fault() const { return fault_; }
  /// Bytes that were gone through: what follows decides nothing of what was found.
  size_t position() const { return at_; }

 private:
  enum class State { kLines, kFirstElement, kNextElement, kDone };
  /// Whether the object there is closed on a later line, as a pretty-printed one is.
  bool is_spread(size_t begin) const;
  bool next_line(RecordSpan& span);
  bool next_element(RecordSpan& span);
  /// One element: up to its matching bracket, or, for anything that is no object or array, up to the next separator.
  bool element(RecordSpan& span);
  /// From the opening quote to the closing one.
  bool skip_string();
  void skip_space();
  bool add(size_t begin, RecordSpan& span);
  bool fail(std::string reason);
  bool finish();
  /// How much of the file is lost behind a fault, for its message.
  std::string not_read(size_t from) const;
  /// Of a byte that may lie at the end; a line is short compared with what was gone through to get there, or it is the
  /// record itself.
  int64_t column_of(size_t at) const;

  std::string_view bytes_;
  State state_ = State::kLines;
  size_t at_ = 0;
  int64_t line_ = 1, elements_ = 0;
  size_t line_begin_ = 0;  // offset of the line's first byte
  std::optional<RecordFault> fault_;
};

}  // namespace troupe
