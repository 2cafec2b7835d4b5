#include "base/regular_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with the object.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("troupe-regular-file-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

std::string complaint(const std::string& path) {
  const auto text = read_text_file(path);
  return text.ok() ? "(read)" : text.error().message;
}

TEST_CASE("A file is read whole, an empty one too") {
  const Folder folder;
  std::ofstream(folder / "a") << std::string(100'000, 'x') << '\n';
  std::ofstream(folder / "empty");
  CHECK(read_text_file(folder / "a").value().size() == 100'001);
  CHECK(read_text_file(folder / "empty").value().empty());
}

TEST_CASE("A pipe, a folder and a device are refused at once, by what they are") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(complaint(pipe) == pipe + ": is a pipe, expected a file");
  CHECK(complaint(folder.path.string()) == folder.path.string() + ": is a folder, expected a file");
  CHECK(complaint("/dev/zero") == "/dev/zero: is a device, expected a file");
  const auto mapped = MappedFile::open(pipe);
  REQUIRE_FALSE(mapped.ok());
  CHECK(mapped.error().message == "cannot open " + pipe + ": is a pipe, expected a file");
}

TEST_CASE("A missing file, a zero byte in a path and a text that is too long are refused by name") {
  const Folder folder;
  CHECK(complaint(folder / "gone") == (folder / "gone") + ": cannot be read: No such file or directory");
  std::ofstream(folder / "a") << "x";
  CHECK(complaint((folder / "a") + std::string(1, '\0') + "b").find("a path cannot hold a zero byte") !=
        std::string::npos);
  fs::resize_file(folder / "a", kMaxTextBytes + 1);
  CHECK(complaint(folder / "a").find("has 16777217 bytes; valid: at most 16777216") != std::string::npos);
}

}  // namespace
}  // namespace troupe
