# Read by ctest before its tests: what they index is not kept in anybody's home folder. Tests of the cache choose folders of their own.
set(ENV{TROUPE_CACHE} off)
