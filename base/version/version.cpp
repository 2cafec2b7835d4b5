#include "base/version/version.h"

#include "commit.h"

namespace troupe {

std::string version_text() { return TROUPE_VERSION " (" TROUPE_BUILD ", commit " TROUPE_COMMIT ")"; }

}  // namespace troupe
