#include "driver/run/log_filter.h"

#include <utility>

#include "base/log/log_tag.h"

namespace troupe::driver {

std::string LogFilter::pass(const std::string& piece) {
  open_ += piece;
  std::string passed;
  size_t begin = 0;
  for (size_t end; (end = open_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = open_.substr(begin, end - begin + 1);
    if (concerns(line)) passed += line;
  }
  open_.erase(0, begin);
  return passed;
}

std::string LogFilter::rest() {
  std::string line = std::exchange(open_, "");
  return concerns(line) ? line : "";
}

bool LogFilter::concerns(const std::string& line) const {
  const auto tag = tag_of_line(line);
  return !tag || ((group_.empty() || group_ == tag->group) && (rank_ < 0 || rank_ == tag->rank));
}

}  // namespace troupe::driver
