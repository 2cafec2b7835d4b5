#pragma once

#include <string>

#include "base/result.h"

/// The files by which the processes of a cluster believe one another.
namespace troupe {

/// The files of NAME.secrets/, by path. All empty: a Unix socket, which the folder's mode protects.
struct Secrets {
  std::string certificate_file;  // PEM; the driver's certificate, and what clients trust
  std::string key_file;          // PEM; the driver only
  std::string token_file;        // one line
  bool empty() const { return certificate_file.empty() && token_file.empty(); }
};

/// The files of `folder` (NAME.secrets/), whether they exist or not.
Secrets secrets_in(const std::string& folder);
/// The whole of a small file (a token, a certificate), trailing newline removed. Refuses an empty one; Unavailable when
/// it is not there.
Result<std::string> read_secret(const std::string& path);

}  // namespace troupe
