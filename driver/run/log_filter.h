#pragma once

#include <string>

/// Picks the lines of a host's log that concern one rank or group. Lines tagged [group/rank] belong to that actor;
/// lines without a tag belong to the whole host and always pass.
namespace troupe::driver {

class LogFilter {
 public:
  /// `group` empty: all groups; `rank` < 0: all ranks.
  LogFilter(std::string group, int rank) : group_(std::move(group)), rank_(rank) {}
  /// Takes the next piece of the log and returns the whole lines that pass.
  std::string pass(const std::string& piece);
  /// The last line, when it had no newline.
  std::string rest();

 private:
  bool concerns(const std::string& line) const;

  std::string group_, open_;
  int rank_;
};

}  // namespace troupe::driver
