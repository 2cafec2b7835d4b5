#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Whom a line of a host's log belongs to: it begins with "[group/rank] ".
namespace troupe {

struct LogTag {
  std::string group;
  int rank = 0;
};

/// "[vision/0] "
std::string log_tag(const std::string& group, int rank);

/// The first tag of a line; none: the line belongs to the whole host.
std::optional<LogTag> tag_of_line(std::string_view line);

}  // namespace troupe
