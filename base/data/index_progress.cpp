#include "base/data/index_progress.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace troupe {
namespace {

constexpr double kLeastSeconds = 1;  // before that a rate says little

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(std::ceil(std::max(seconds, 0.0)));
  if (s < 100) return std::to_string(s) + " s";
  if (s < 100 * 60) return std::to_string((s + 59) / 60) + " min";
  return std::to_string((s + 3599) / 3600) + " h";
}

}  // namespace

double seconds_left(double seconds, int64_t read_bytes, int64_t left_bytes) {
  if (seconds < kLeastSeconds || read_bytes <= 0) return -1;
  return seconds * static_cast<double>(left_bytes) / static_cast<double>(read_bytes);
}

std::string progress_text(const IndexProgress& p) {
  const int64_t percent = p.total_bytes > 0 ? p.done_bytes * 100 / p.total_bytes : 100;
  std::string text = std::to_string(percent) + " % of the data, " + std::to_string(p.records) + " records";
  if (p.seconds_left >= 0) text += ", about " + duration_text(p.seconds_left) + " left";
  return text;
}

std::string progress_line(const IndexProgress& p) {
  return "progress " + std::to_string(p.records) + " " + std::to_string(p.done_bytes) + " " +
         std::to_string(p.total_bytes) + " " + std::to_string(static_cast<int64_t>(std::ceil(p.seconds_left)));
}

std::optional<IndexProgress> parse_progress_line(const std::string& line) {
  std::istringstream words(line);
  std::string first;
  IndexProgress p;
  if (!(words >> first >> p.records >> p.done_bytes >> p.total_bytes >> p.seconds_left) || first != "progress")
    return std::nullopt;
  return p;
}

}  // namespace troupe
