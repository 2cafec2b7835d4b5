#include "base/log/log_tag.h"

#include <charconv>

namespace troupe {

std::string log_tag(const std::string& group, int rank) { return "[" + group + "/" + std::to_string(rank) + "] "; }

std::optional<LogTag> tag_of_line(std::string_view line) {
  constexpr auto npos = std::string_view::npos;
  const size_t open = line.find('[');
  if (open == npos) return std::nullopt;
  const size_t slash = line.find('/', open);
  if (slash == npos) return std::nullopt;
  const size_t close = line.find(']', slash);
  if (close == npos) return std::nullopt;
  LogTag tag;
  tag.group = line.substr(open + 1, slash - open - 1);
  const std::string_view digits = line.substr(slash + 1, close - slash - 1);
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), tag.rank);
  if (error != std::errc() || end != digits.end() || tag.rank < 0) return std::nullopt;
  if (tag.group.empty() || tag.group.find_first_of(" []") != std::string::npos) return std::nullopt;
  return tag;
}

}  // namespace troupe
