#include "base/config/cache_settings.h"

#include <filesystem>

#include "base/config/scalars.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGib = int64_t{1} << 30, kDefaultGib = 16, kMostGib = 1 << 20;

std::string value_of(const Environment& environment, const char* name) {
  const auto at = environment.find(name);
  return at == environment.end() ? std::string() : at->second;
}

}  // namespace

CacheSettings index_cache_settings(const Environment& environment) {
  CacheSettings settings;
  settings.limit_bytes = kDefaultGib * kGib;
  const std::string own = value_of(environment, "TROUPE_CACHE"), shared = value_of(environment, "XDG_CACHE_HOME"),
                    home = value_of(environment, "HOME"), limit = value_of(environment, "TROUPE_CACHE_GIB");
  if (own == "off") return settings;
  if (!limit.empty()) {
    const auto gib = parse_integer(limit);
    if (gib && *gib >= 1 && *gib <= kMostGib)
      settings.limit_bytes = *gib * kGib;
    else
      settings.warning = "TROUPE_CACHE_GIB '" + limit + "' is not valid, " + std::to_string(kDefaultGib) +
                         " GiB are kept; valid: 1 to " + std::to_string(kMostGib);
  }
  std::error_code ignored;
  if (!own.empty())
    settings.folder = fs::absolute(own, ignored).string() + "/index";
  else if (fs::path(shared).is_absolute())
    settings.folder = shared + "/troupe/index";
  else if (!home.empty())
    settings.folder = home + "/.cache/troupe/index";
  else
    settings.warning =
        "no index is kept for later runs: there is no home folder; valid: TROUPE_CACHE=FOLDER, or TROUPE_CACHE=off";
  return settings;
}

}  // namespace troupe
