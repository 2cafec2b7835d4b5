#pragma once

#include <cstdint>
#include <string>

#include "base/config/variables.h"

namespace troupe {

/// Where blocks of indexes are kept between runs, and how much of them.
struct CacheSettings {
  std::string folder;  // absolute; empty: nothing is kept
  int64_t limit_bytes = 0;
  std::string warning;  // what a person should know about the choice; empty: nothing
};

/// TROUPE_CACHE names the folder ("off": nothing is kept), else it is XDG_CACHE_HOME/troupe or ~/.cache/troupe; blocks
/// lie in its subfolder `index`. TROUPE_CACHE_GIB is the limit. Pure; touches no disk.
CacheSettings index_cache_settings(const Environment& environment);

}  // namespace troupe
