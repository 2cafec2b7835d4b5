#pragma once

#include <memory>
#include <string>

#include "base/result.h"

/// The private folder with the driver's socket, and the small process that removes it even when this one is killed.
namespace troupe::cli {

/// To be made before any thread is started: it forks. The janitor has its own session, so that neither Ctrl-C nor the
/// end of a terminal reaches it, holds no other descriptor, and ends when this process does.
class PrivateFolder {
 public:
  /// Mode 0700, in the system's folder for temporary files.
  static Result<std::unique_ptr<PrivateFolder>> create();
  /// Removes the folder and waits for the janitor.
  ~PrivateFolder();
  const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, int pipe, int janitor) : path_(std::move(path)), pipe_(pipe), janitor_(janitor) {}
  std::string path_;
  int pipe_;
  int janitor_;
};

}  // namespace troupe::cli
