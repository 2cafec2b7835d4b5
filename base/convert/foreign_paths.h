#pragma once

#include <string>

namespace troupe::convert {

/// Paths of a foreign configuration: relative ones are taken from the folder that its tool runs in, and written
/// relative to the folder of the spec. Absolute ones stay as they are.
class ForeignPaths {
 public:
  /// `working_folder`: absolute. `spec_folder`: absolute, or "" when nobody knows where the spec will lie; paths are
  /// then written as absolute ones.
  ForeignPaths(std::string working_folder, std::string spec_folder)
      : working_folder_(std::move(working_folder)), spec_folder_(std::move(spec_folder)) {}

  /// Where a path leads, without "." and "..".
  std::string absolute(const std::string& path) const;
  /// The same place as the spec has to name it.
  std::string written(const std::string& path) const;

 private:
  std::string working_folder_, spec_folder_;
};

}  // namespace troupe::convert
