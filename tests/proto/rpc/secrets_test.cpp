#include "proto/rpc/secrets.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace troupe;

TEST_CASE("A missing or empty secret is an error that names its file") {
  const std::string file = std::filesystem::temp_directory_path() / "troupe_channel_test_secret";
  std::filesystem::remove(file);
  CHECK(read_secret(file).error().message.find(file) != std::string::npos);
  CHECK(read_secret(file).error().code == ErrorCode::kUnavailable);
  std::ofstream(file) << "\n";
  CHECK_FALSE(read_secret(file).ok());
  std::ofstream(file) << "abc\n";
  CHECK(*read_secret(file) == "abc");
  std::filesystem::remove(file);
}
