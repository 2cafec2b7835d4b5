#include <catch2/catch.hpp>

#include "actors/parquet/parquet_rows.h"

namespace troupe {

TEST_CASE("A build without Parquet refuses such a file and says what to do") {
  const auto file = MappedFile::open("/proc/self/exe");
  REQUIRE(file.ok());
  const auto opened = open_parquet(*file, "a.parquet", {});
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().code == ErrorCode::kInvalidArgument);
  CHECK(opened.error().message.find("a.parquet is a Parquet file, and this program was built without Parquet") == 0);
}

}  // namespace troupe
