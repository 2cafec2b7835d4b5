#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/data/sample_index.h"

namespace troupe {

/// What one pass over the records has found of picture files so far, so that a picture that many records name is looked
/// at once. Forgets rather than grow beyond about 30 MiB. Thread-safe.
class SeenGrids {
 public:
  struct Seen {
    uint64_t stamp = 0;                // PictureRoot::stamp
    std::optional<IndexedImage> grid;  // nothing: only the stamp was asked for
  };
  std::optional<Seen> find(int source, const std::string& path);
  void put(int source, const std::string& path, const Seen& seen);

 private:
  static constexpr size_t kParts = 16, kMostOfPart = size_t{1} << 14;
  struct Part {
    std::mutex mutex;
    std::unordered_map<std::string, Seen> seen;
  };
  static std::string name_of(int source, const std::string& path) { return std::to_string(source) + '\0' + path; }
  Part& part_of(const std::string& name) { return parts_[std::hash<std::string>()(name) % kParts]; }
  std::array<Part, kParts> parts_;
};

}  // namespace troupe
