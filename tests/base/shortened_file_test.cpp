#include "base/shortened_file.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "base/safetensors/safetensors_file.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytes = 8 * 65536;  // several pages, whatever their size
const std::string kSaid =
    " became shorter while it was read, or its disk cannot be read; "
    "valid: a file that stays as it is for as long as it is in use";

/// A folder that goes away with the object.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("troupe-shortened-file-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const {
    std::ofstream(path / name) << std::string(kFileBytes, 'x');
    return (path / name).string();
  }
};

struct End {
  int exit_code = 0, signal = 0;
  std::string said;
};

/// How a process that does `work` ends, and its standard error.
End end_of(const std::function<void()>& work) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::alarm(30);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    work();
    ::_exit(0);
  }
  ::close(ends[1]);
  End end;
  char text[512];
  for (ssize_t n = 0; (n = ::read(ends[0], text, sizeof text)) > 0;) end.said.append(text, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

char last_byte_of(const MappedFile& file) {
  return *(static_cast<volatile const char*>(file.bytes().data()) + file.bytes().size() - 1);
}

void before_ours(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(SIGBUS, &action, nullptr);
}

void say_reporter(int) {
  static_cast<void>(!::write(STDERR_FILENO, "reporter", 8));
  ::_exit(3);
}

TEST_CASE("A process that reads bytes which its file no longer has names the file and ends by the signal") {
  const Folder folder;
  const std::string path = folder.file("a\n.jsonl"), other = folder.file("b.jsonl");
  for (const bool reporter : {false, true}) {
    const End end = end_of([&] {
      if (reporter) before_ours(say_reporter);
      const auto before = MappedFile::open(other), file = MappedFile::open(path), behind = MappedFile::open(other);
      fs::resize_file(path, 10);
      last_byte_of(**file);
    });
    fs::resize_file(path, kFileBytes);
    CHECK(end.signal == SIGBUS);
    CHECK(end.said == "shortened_file_test: " + (folder.path / "a\\n.jsonl").string() + kSaid + "\n");
    CHECK(shortened_file_said_in("step 3\n" + end.said + "more\n") == (folder.path / "a\\n.jsonl").string() + kSaid);
  }
  CHECK(shortened_file_said_in("step 3\nmore\n").empty());
}

TEST_CASE("Threads that meet the end of a file at once say one line") {
  const Folder folder;
  const std::string path = folder.file("a.jsonl");
  const End end = end_of([&] {
    const auto file = MappedFile::open(path);
    fs::resize_file(path, 10);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { last_byte_of(**file); });
    for (std::thread& thread : threads) thread.join();
  });
  CHECK(end.signal == SIGBUS);
  CHECK(end.said == "shortened_file_test: " + path + kSaid + "\n");
}

TEST_CASE("A safetensors file that became shorter is named") {
  const Folder folder;
  const std::string path = (folder.path / "a.safetensors").string();
  const std::string header = R"({"w":{"dtype":"F32","shape":[131072],"data_offsets":[0,524288]}})";
  std::ofstream(path) << static_cast<char>(header.size()) << std::string(7, '\0') << header << std::string(524288, 'x');
  const End end = end_of([&] {
    const auto file = SafetensorsFile::open(path);
    if (!file.ok()) return;
    fs::resize_file(path, 10);
    const TensorInfo& tensor = (*file)->tensors()[0];
    static_cast<void>(*(reinterpret_cast<volatile const char*>((*file)->data(tensor)) + tensor.bytes() - 1));
  });
  CHECK(end.signal == SIGBUS);
  CHECK(end.said == "shortened_file_test: " + path + kSaid + "\n");
}

TEST_CASE("A signal that is not about a mapped file goes to the handler that was there before") {
  const Folder folder;
  const std::string path = folder.file("a.jsonl");
  const auto sent = [&] {
    const auto file = MappedFile::open(path);
    ::raise(SIGBUS);
  };
  const auto let_go = [&] {
    void* address = nullptr;
    {
      const auto file = MappedFile::open(path);
      address = const_cast<char*>((*file)->bytes().data());
    }
    std::FILE* again = std::fopen(path.c_str(), "r");
    // The same addresses, this time nobody's.
    if (::mmap(address, kFileBytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, ::fileno(again), 0) != address) ::_exit(4);
    fs::resize_file(path, 10);
    static_cast<void>(*(static_cast<volatile const char*>(address) + kFileBytes - 1));
  };
  for (const std::function<void()>& work : {std::function<void()>(sent), std::function<void()>(let_go)}) {
    const End alone = end_of([&] {
      before_ours(SIG_DFL);
      work();
    });
    CHECK(alone.signal == SIGBUS);
    CHECK(alone.said.empty());
    fs::resize_file(path, kFileBytes);
    const End reported = end_of([&] {
      before_ours(say_reporter);
      work();
    });
    CHECK(reported.exit_code == 3);
    CHECK(reported.said == "reporter");
    fs::resize_file(path, kFileBytes);
  }
}

TEST_CASE("More files than can be named are mapped and read all the same, and names come free again") {
  const Folder folder;
  const std::string path = folder.file("a.jsonl");
  const End end = end_of([&] {
    {
      std::vector<std::shared_ptr<const MappedFile>> files;
      for (int i = 0; i < kMostNamedMappings + 10; ++i) files.push_back(MappedFile::open(path).value());
      if (last_byte_of(*files.back()) != 'x') return;
    }
    const auto file = MappedFile::open(path);
    fs::resize_file(path, 10);
    last_byte_of(**file);
  });
  CHECK(end.signal == SIGBUS);
  CHECK(end.said == "shortened_file_test: " + path + kSaid + "\n");
}

}  // namespace
}  // namespace troupe
