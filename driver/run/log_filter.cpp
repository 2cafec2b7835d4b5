#include "driver/run/log_filter.h"

#include <cstdlib>
#include <utility>

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
  const size_t open = line.find('[');
  const size_t slash = line.find('/', open);
  const size_t close = line.find(']', slash);
  if (open == std::string::npos || slash == std::string::npos || close == std::string::npos || close == slash + 1) return true;
  const std::string group = line.substr(open + 1, slash - open - 1), rank = line.substr(slash + 1, close - slash - 1);
  if (group.empty() || rank.find_first_not_of("0123456789") != std::string::npos || group.find_first_of(" []") != std::string::npos) return true;
  return (group_.empty() || group_ == group) && (rank_ < 0 || rank_ == std::atoi(rank.c_str()));
}

}  // namespace troupe::driver
