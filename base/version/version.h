#pragma once

#include <string>

namespace troupe {

/// "0.1.0 (Release, commit 0123456789ab)"; "-dirty" behind a commit says that files differed from it, "unknown" that it
/// was not built in a repository.
std::string version_text();

}  // namespace troupe
