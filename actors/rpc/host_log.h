#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/host/control.h"

/// What an actor host writes into its log (its standard error): lines that begin with the tag of an actor.
namespace troupe {

/// (group, rank) of every actor on this host. A group is named by its number when the spec cannot be read.
std::vector<std::pair<std::string, int>> actors_of(const HostAssignment& assignment);

/// Thread-safe.
class HostLog {
 public:
  explicit HostLog(const HostAssignment& assignment);
  /// Writes `text` once for each actor of the host: "[vision/0] 12:34:56.789 TEXT" (UTC); line ends become blanks.
  void line(const std::string& text) const;

 private:
  std::vector<std::string> tags_;
};

/// While it lives, warnings and errors of this process's spdlog go to `warned` (from any thread) instead of standard
/// output.
class WarningTap {
 public:
  explicit WarningTap(std::function<void(const std::string&)> warned);
  ~WarningTap();
  WarningTap(const WarningTap&) = delete;
  WarningTap& operator=(const WarningTap&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;
};

}  // namespace troupe
