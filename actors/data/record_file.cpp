#include "actors/data/record_file.h"

#include <algorithm>

#include "base/amount_text.h"

namespace troupe {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// How far the end of a first object is looked for.
constexpr size_t kMostSpreadBytes = size_t{64} << 20;
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

RecordScanner::RecordScanner(std::string_view bytes) : bytes_(bytes) {
  if (bytes.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  size_t first = at_;
  while (first < bytes.size() && is_space(bytes[first])) ++first;
  if (first == bytes.size()) {
    fault_ = RecordFault{1, 1, "the file holds no record"};
    state_ = State::kDone;
    at_ = first;
  } else if (bytes[first] == '[') {
    line_ += std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(first), '\n');
    at_ = first;
    line_begin_ = at_ + 1 - static_cast<size_t>(column_of(at_));
    ++at_;
    state_ = State::kFirstElement;
  } else if (bytes[first] == '{' && is_spread(first)) {
    line_ += std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(first), '\n');
    at_ = first;
    fail("the object that begins here goes over several lines; " + std::string(kLinesOrArray));
  }
}

bool RecordScanner::is_spread(size_t begin) const {
  int depth = 0;
  bool in_string = false, spread = false;
  const size_t end = std::min(bytes_.size(), begin + kMostSpreadBytes);
  for (size_t i = begin; i < end; ++i) {
    const char c = bytes_[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (c == '\n') {
      if (in_string) return false;  // the line is broken, not laid out
      spread = true;
    } else if (!in_string && (c == '{' || c == '[')) {
      ++depth;
    } else if (!in_string && (c == '}' || c == ']') && --depth == 0) {
      return spread;
    }
  }
  return false;
}

bool RecordScanner::next(RecordSpan& span) {
  if (state_ == State::kDone) return false;
  return state_ == State::kLines ? next_line(span) : next_element(span);
}

bool RecordScanner::next_line(RecordSpan& span) {
  while (at_ < bytes_.size()) {
    const size_t begin = at_, end = std::min(bytes_.find('\n', begin), bytes_.size());
    at_ = std::min(end + 1, bytes_.size());
    const int64_t line = line_++;
    size_t first = begin, last = end;
    while (first < last && is_space(bytes_[first])) ++first;
    while (last > first && is_space(bytes_[last - 1])) --last;
    if (first == last) continue;
    span = {static_cast<int64_t>(first), static_cast<int64_t>(last - first), line,
            static_cast<int64_t>(first - begin) + 1, 0};
    return true;
  }
  state_ = State::kDone;
  return false;
}

bool RecordScanner::next_element(RecordSpan& span) {
  skip_space();
  if (at_ >= bytes_.size()) return fail("the array is not closed");
  if (bytes_[at_] == ']') return finish();
  if (state_ == State::kNextElement) {
    if (bytes_[at_] != ',') return fail("',' or ']' is due after a record");
    ++at_;
    skip_space();
    if (at_ >= bytes_.size()) return fail("the array is not closed");
    if (bytes_[at_] == ']') return fail("a comma stands before the closing ']'");
  }
  state_ = State::kNextElement;
  return element(span);
}

bool RecordScanner::element(RecordSpan& span) {
  const size_t begin = at_;
  span.line = line_;
  span.element = ++elements_;
  span.column = static_cast<int64_t>(at_ - line_begin_) + 1;
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
      if (depth == 0) return add(begin, span);
      if (--depth == 0) {
        ++at_;
        return add(begin, span);
      }
    } else if (c == ',' && depth == 0) {
      return add(begin, span);
    }
  }
  fault_ =
      RecordFault{span.line, span.column,
                  "the record that begins here does not end: a quote, bracket or brace is missing or one too many" +
                      not_read(begin)};
  state_ = State::kDone;
  return false;
}

bool RecordScanner::add(size_t begin, RecordSpan& span) {
  if (at_ == begin) return fail(std::string("a record is due before '") + bytes_[at_] + "'");
  span.offset = static_cast<int64_t>(begin);
  span.length = static_cast<int64_t>(at_ - begin);
  return true;
}

bool RecordScanner::skip_string() {
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

void RecordScanner::skip_space() {
  for (; at_ < bytes_.size() && is_space(bytes_[at_]); ++at_) {
    if (bytes_[at_] != '\n') continue;
    ++line_;
    line_begin_ = at_ + 1;
  }
}

bool RecordScanner::fail(std::string reason) {
  fault_ = RecordFault{line_, column_of(at_), std::move(reason) + not_read(at_)};
  state_ = State::kDone;
  return false;
}

std::string RecordScanner::not_read(size_t from) const {
  if (bytes_.find_first_not_of("] \t\r\n", from) == std::string_view::npos) return {};
  return "; nothing of the file from here on is read (" + bytes_text(static_cast<int64_t>(bytes_.size() - from)) +
         " of " + bytes_text(static_cast<int64_t>(bytes_.size())) + ")";
}

bool RecordScanner::finish() {
  ++at_;
  skip_space();
  state_ = State::kDone;
  return at_ < bytes_.size() ? fail("more text follows the closing ']'") : false;
}

int64_t RecordScanner::column_of(size_t at) const {
  const size_t last = at == 0 ? std::string_view::npos : bytes_.rfind('\n', at - 1);
  return static_cast<int64_t>(last == std::string_view::npos ? at + 1 : at - last);
}

}  // namespace troupe
