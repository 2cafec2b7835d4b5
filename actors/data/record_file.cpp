#include "actors/data/record_file.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Walks an array's elements without parsing them.
class ArrayScanner {
 public:
  ArrayScanner(std::string_view bytes, size_t at, int64_t line, RecordFile& out)
      : bytes_(bytes), at_(at), line_(line), out_(out) {
    line_begin_ = at_ + 1 - static_cast<size_t>(column_of(at_));
  }

  void run() {
    ++at_;  // the opening bracket
    skip_space();
    if (at_ < bytes_.size() && bytes_[at_] == ']') return finish();
    while (true) {
      if (at_ >= bytes_.size()) return fault("the array is not closed");
      if (bytes_[at_] == ']') return fault("a comma stands before the closing ']'");
      if (!element()) return;
      skip_space();
      if (at_ >= bytes_.size()) return fault("the array is not closed");
      if (bytes_[at_] == ']') return finish();
      if (bytes_[at_] != ',') return fault("',' or ']' is due after a record");
      ++at_;
      skip_space();
    }
  }

 private:
  void fault(std::string reason) { out_.fault = RecordFile::Fault{line_, column_of(at_), std::move(reason)}; }
  /// Of a byte that may lie at the end; a line is short compared with what was scanned to get there, or it is the
  /// record itself.
  int64_t column_of(size_t at) const {
    const size_t last = at == 0 ? std::string_view::npos : bytes_.rfind('\n', at - 1);
    return static_cast<int64_t>(last == std::string_view::npos ? at + 1 : at - last);
  }
  void finish() {
    ++at_;
    skip_space();
    if (at_ < bytes_.size()) fault("more text follows the closing ']'");
  }
  void skip_space() {
    for (; at_ < bytes_.size() && is_space(bytes_[at_]); ++at_) {
      if (bytes_[at_] != '\n') continue;
      ++line_;
      line_begin_ = at_ + 1;
    }
  }
  /// One element: up to its matching bracket, or, for anything that is no object or array, up to the next separator.
  bool element() {
    const size_t begin = at_;
    const int64_t line = line_, column = static_cast<int64_t>(at_ - line_begin_) + 1;
    int depth = 0;
    for (; at_ < bytes_.size(); ++at_) {
      const char c = bytes_[at_];
      if (c == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
      if (c == '"') {
        if (!skip_string()) break;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return add(begin, line, column);
        if (--depth == 0) {
          ++at_;
          return add(begin, line, column);
        }
      } else if (c == ',' && depth == 0) {
        return add(begin, line, column);
      }
    }
    out_.fault = RecordFile::Fault{line, column, "the record that begins here is cut off"};
    return false;
  }
  bool add(size_t begin, int64_t line, int64_t column) {
    if (at_ == begin) {
      fault(std::string("a record is due before '") + bytes_[at_] + "'");
      return false;
    }
    out_.records.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(at_ - begin), line, column});
    return true;
  }
  /// From the opening quote to the closing one.
  bool skip_string() {
    for (++at_; at_ < bytes_.size(); ++at_) {
      if (bytes_[at_] == '\\') {
        ++at_;
      } else if (bytes_[at_] == '"') {
        return true;
      } else if (bytes_[at_] == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
    }
    return false;
  }

  std::string_view bytes_;
  size_t at_;
  int64_t line_;
  size_t line_begin_ = 0;  // offset of the line's first byte
  RecordFile& out_;
};

void find_lines(std::string_view bytes, size_t from, RecordFile& out) {
  int64_t line = 1;
  for (size_t begin = from; begin < bytes.size(); ++line) {
    size_t end = bytes.find('\n', begin);
    if (end == std::string_view::npos) end = bytes.size();
    size_t first = begin, last = end;
    while (first < last && is_space(bytes[first])) ++first;
    while (last > first && is_space(bytes[last - 1])) --last;
    if (first < last)
      out.records.push_back({static_cast<int64_t>(first), static_cast<int64_t>(last - first), line,
                             static_cast<int64_t>(first - begin) + 1});
    begin = end + 1;
  }
}

}  // namespace

RecordFile find_records(std::string_view bytes) {
  RecordFile out;
  const size_t from = bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  size_t first = from;
  while (first < bytes.size() && is_space(bytes[first])) ++first;
  if (first == bytes.size()) {
    out.fault = RecordFile::Fault{1, 1, "the file holds no record"};
  } else if (bytes[first] == '[') {
    const auto lines = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(first), '\n');
    ArrayScanner(bytes, first, 1 + lines, out).run();
  } else {
    find_lines(bytes, from, out);
  }
  return out;
}

}  // namespace troupe
