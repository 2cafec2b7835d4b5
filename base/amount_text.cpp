#include "base/amount_text.h"

#include <array>
#include <cstdio>

namespace troupe {
namespace {

std::string scaled(double value, const std::array<const char*, 4>& units, double base) {
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof(text), "%.*f %s", unit == 0 ? 0 : 2, value, units[unit]);
  std::string out = text;
  return out.back() == ' ' ? out.substr(0, out.size() - 1) : out;
}

}  // namespace

std::string bytes_text(int64_t bytes) { return scaled(static_cast<double>(bytes), {"B", "KiB", "MiB", "GiB"}, 1024); }
std::string count_text(int64_t count) { return scaled(static_cast<double>(count), {"", "K", "M", "B"}, 1000); }

}  // namespace troupe
