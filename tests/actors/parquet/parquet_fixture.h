#pragma once

#include <string>

namespace troupe::fixture {

/// A file that tests/actors/parquet/make_fixture.py wrote.
inline std::string parquet(const std::string& name) {
  return std::string(TROUPE_SOURCE_DIR) + "/tests/actors/parquet/fixture/" + name;
}

}  // namespace troupe::fixture
