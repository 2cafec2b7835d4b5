#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "driver/rpc/server.h"

using namespace troupe;
using namespace troupe::driver;
namespace fs = std::filesystem;

namespace {
struct Root {
  Root() : path(fs::temp_directory_path() / ("troupe_secrets_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Root() { fs::remove_all(path); }
  fs::path path;
};
int mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}
}  // namespace

TEST_CASE("Secrets are made once, private from their first byte, and kept afterwards") {
  Root root;
  const std::string folder = root.path / "pair.secrets";
  REQUIRE(make_secrets(folder).ok());
  const Secrets secrets = secrets_in(folder);
  CHECK(mode_of(folder) == 0700);
  for (const std::string& file : {secrets.certificate_file, secrets.key_file, secrets.token_file})
    CHECK(mode_of(file) == 0600);
  const std::string token = *read_secret(secrets.token_file), certificate = *read_secret(secrets.certificate_file);
  CHECK(token.size() == 64);
  REQUIRE(make_secrets(folder).ok());
  CHECK(*read_secret(secrets.token_file) == token);
  CHECK(*read_secret(secrets.certificate_file) == certificate);
  const std::string other = root.path / "other.secrets";
  REQUIRE(make_secrets(other).ok());
  CHECK(*read_secret(secrets_in(other).token_file) != token);
}

TEST_CASE("A key that others can read is refused by name") {
  Root root;
  const std::string folder = root.path / "pair.secrets";
  REQUIRE(make_secrets(folder).ok());
  const std::string key = secrets_in(folder).key_file;
  ::chmod(key.c_str(), 0644);
  const Status status = make_secrets(folder);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find(key) != std::string::npos);
}
