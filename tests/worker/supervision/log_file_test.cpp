#include "worker/supervision/log_file.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace troupe::worker;
namespace fs = std::filesystem;

namespace {
std::string fresh(const char* name) {
  const fs::path path = fs::temp_directory_path() / (std::string(name) + std::to_string(::getpid()));
  fs::remove(path);
  return path;
}
}  // namespace

TEST_CASE("A log within its cap is left alone, a longer one keeps its last half beside itself") {
  const std::string path = fresh("troupe_cap_");
  std::ofstream writer(path, std::ios::app);
  writer << std::string(50, 'a') << std::flush;
  cap_log(path, 100);
  CHECK(fs::file_size(path) == 50);
  writer << std::string(100, 'b') << std::flush;
  cap_log(path, 100);
  CHECK(fs::file_size(path) == 0);
  CHECK(fs::file_size(path + ".old") == 50);
  writer << "more" << std::flush;
  CHECK(fs::file_size(path) == 4);
  fs::remove(path);
  fs::remove(path + ".old");
}

TEST_CASE("Only whole lines are read, each once") {
  const std::string path = fresh("troupe_tail_");
  LineTail tail(path);
  CHECK(tail.read_new().empty());
  std::ofstream writer(path, std::ios::app);
  writer << "one\ntw" << std::flush;
  CHECK(tail.read_new() == std::vector<std::string>{"one"});
  writer << "o\nthree\n" << std::flush;
  CHECK(tail.read_new() == std::vector<std::string>{"two", "three"});
  CHECK(tail.read_new().empty());
  fs::remove(path);
}
