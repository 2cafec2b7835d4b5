#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace troupe::driver {

/// A file that grows by complete lines (metrics.jsonl, events.jsonl). What a full disk does not take waits in memory,
/// in order, so that no line is lost or torn. Owner loop only.
class LineFile {
 public:
  /// Opens or makes the file; a last line without an end, left by a driver that was killed, is cut off.
  explicit LineFile(std::string path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Complete lines, each with its newline. They are in the file when the call returns Ok; else (ResourceExhausted,
  /// naming the file) those that did not fit wait for the next call.
  Status append(const std::string& lines);
  /// Writes what waits.
  Status flush() { return append(""); }
  /// How many lines are not in the file.
  long waiting() const;

 private:
  void cut_torn_line();
  /// The file's length becomes `end`; what cannot be cut now is cut before the next line. 0 or errno.
  int cut(off_t end);

  std::string path_;
  int file_ = -1;
  int open_error_ = 0;
  off_t torn_at_ = -1;  // where a part of a line begins that could not be cut off
  std::string waiting_;
};

}  // namespace troupe::driver
