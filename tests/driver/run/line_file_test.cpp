#include "driver/run/line_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/driver/run/file_size_limit.h"

using namespace troupe;
using namespace troupe::driver;
namespace fs = std::filesystem;

namespace {

struct File {
  File() : path(fs::temp_directory_path() / ("troupe_line_file_" + std::to_string(::getpid()))) { fs::remove(path); }
  ~File() { fs::remove(path); }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
  }
  std::string path;
};

}  // namespace

TEST_CASE("Lines that a full disk does not take wait, whole and in order, until there is room") {
  File file;
  LineFile lines(file.path);
  REQUIRE(lines.append("one\n").ok());
  {
    const FileSizeLimit limit(14);
    CHECK(lines.append("two\nthree\n").ok());  // fits to the last byte
  }
  {
    const FileSizeLimit limit(22);
    const Status refused = lines.append("four\nfive\nsix\n");  // the disk takes "four\nfiv"
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kResourceExhausted);
    CHECK(refused.error().message.find(file.path) != std::string::npos);
    CHECK(file.text() == "one\ntwo\nthree\nfour\n");
    CHECK(lines.waiting() == 2);
    CHECK_FALSE(lines.append("seven\n").ok());
    CHECK(file.text() == "one\ntwo\nthree\nfour\n");
    CHECK(lines.waiting() == 3);
  }
  CHECK(lines.flush().ok());
  CHECK(file.text() == "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  CHECK(lines.waiting() == 0);
}

TEST_CASE("A part of a line that cannot be cut off is cut before the next line, never written behind") {
  const int memory = ::memfd_create("troupe_line_file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(memory >= 0);
  LineFile lines("/proc/self/fd/" + std::to_string(memory));
  REQUIRE(lines.append("one\n").ok());
  REQUIRE(::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  {
    const FileSizeLimit limit(6);
    CHECK_FALSE(lines.append("two\n").ok());  // "tw" is there, and stays
  }
  CHECK_FALSE(lines.append("three\n").ok());
  CHECK(lines.waiting() == 2);
  CHECK(::lseek(memory, 0, SEEK_END) == 6);
  ::close(memory);
}

TEST_CASE("A last line without an end is cut off when the file is opened again") {
  const std::string longer(10000, 'x');
  for (const std::string& kept : {std::string(), std::string("one\n"), "one\n" + longer + "\n"})
    for (const std::string& torn : {std::string(), std::string("{\"step\": 3"), longer}) {
      File file;
      std::ofstream(file.path, std::ios::binary) << kept << torn;
      LineFile lines(file.path);
      CHECK(file.text() == kept);
      CHECK(lines.append("next\n").ok());
      CHECK(file.text() == kept + "next\n");
    }
}

TEST_CASE("A file that cannot be opened is an error of the first line, which waits") {
  LineFile lines("/proc/no/such/folder/metrics.jsonl");
  const Status refused = lines.append("one\n");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("No such file") != std::string::npos);
  CHECK(lines.waiting() == 1);
}
