#include "base/convert/foreign_paths.h"

#include <filesystem>

#include "base/config/data_sources.h"

namespace troupe::convert {
namespace fs = std::filesystem;

std::string ForeignPaths::absolute(const std::string& path) const { return resolve_path(path, working_folder_); }

std::string ForeignPaths::written(const std::string& path) const {
  const std::string whole = absolute(path);
  if (fs::path(path).is_absolute() || spec_folder_.empty()) return whole;
  return fs::path(whole).lexically_relative(spec_folder_).string();
}

}  // namespace troupe::convert
