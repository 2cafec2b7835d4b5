#include "base/config/cache_settings.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("The cache lies in XDG_CACHE_HOME or the home folder unless TROUPE_CACHE says otherwise") {
  CHECK(index_cache_settings({{"HOME", "/h"}}).folder == "/h/.cache/troupe/index");
  CHECK(index_cache_settings({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).folder == "/x/troupe/index");
  CHECK(index_cache_settings({{"HOME", "/h"}, {"XDG_CACHE_HOME", "x"}}).folder == "/h/.cache/troupe/index");
  CHECK(index_cache_settings({{"HOME", "/h"}, {"TROUPE_CACHE", "/t"}}).folder == "/t/index");
  const auto off = index_cache_settings({{"HOME", "/h"}, {"TROUPE_CACHE", "off"}});
  CHECK(off.folder.empty());
  CHECK(off.warning.empty());
  CHECK(index_cache_settings({}).folder.empty());
  CHECK(index_cache_settings({}).warning.find("TROUPE_CACHE=FOLDER") != std::string::npos);
}

TEST_CASE("TROUPE_CACHE_GIB is the limit; what is no number of GiB is said and not obeyed") {
  CHECK(index_cache_settings({{"HOME", "/h"}}).limit_bytes == int64_t{16} << 30);
  CHECK(index_cache_settings({{"HOME", "/h"}, {"TROUPE_CACHE_GIB", "3"}}).limit_bytes == int64_t{3} << 30);
  for (const char* bad : {"0", "-1", "many", "1.5"}) {
    const auto settings = index_cache_settings({{"HOME", "/h"}, {"TROUPE_CACHE_GIB", bad}});
    CHECK(settings.limit_bytes == int64_t{16} << 30);
    CHECK(settings.warning.find(bad) != std::string::npos);
  }
}
