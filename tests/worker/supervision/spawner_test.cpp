#include "worker/supervision/spawner.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>

using namespace troupe;
using namespace troupe::worker;

namespace {

struct End {
  int pid, code, signal;
};

struct Fixture {
  Fixture() {
    auto created = Spawner::create([this](int pid, int code, int signal) { end.set_value({pid, code, signal}); });
    spawner = std::move(*created);
    folder = std::filesystem::temp_directory_path() / ("troupe_spawner_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  ~Fixture() { std::filesystem::remove_all(folder); }
  SpawnSpec shell(const std::string& script) {
    SpawnSpec spec;
    spec.arguments = {"/bin/sh", "-c", script};
    spec.output_path = folder / "log";
    return spec;
  }
  std::string log() {
    std::ifstream file(folder / "log");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::promise<End> end;
  std::unique_ptr<Spawner> spawner;
  std::filesystem::path folder;
};

}  // namespace

TEST_CASE("A child's exit status and output arrive", "[spawner]") {
  Fixture f;
  SpawnSpec spec = f.shell("echo out $NAME; echo err >&2; exit 7");
  spec.environment["NAME"] = "value";
  const auto pid = f.spawner->spawn(spec);
  REQUIRE(pid.ok());
  const End end = f.end.get_future().get();
  CHECK(end.pid == *pid);
  CHECK(end.code == 7);
  CHECK(end.signal == 0);
  CHECK(f.log() == "out value\nerr\n");
}

TEST_CASE("A program that does not exist is an error, not a child", "[spawner]") {
  Fixture f;
  SpawnSpec spec = f.shell("");
  spec.arguments = {"/nonexistent/program"};
  const auto pid = f.spawner->spawn(spec);
  REQUIRE_FALSE(pid.ok());
  CHECK(pid.error().code == ErrorCode::kNotFound);
  CHECK(pid.error().message.find("/nonexistent/program") != std::string::npos);
}

TEST_CASE("A signal reaches the child's whole group and names itself at the end", "[spawner]") {
  Fixture f;
  const auto pid = f.spawner->spawn(f.shell("sleep 1000 & wait"));
  REQUIRE(pid.ok());
  CHECK(::getpgid(*pid) == *pid);
  f.spawner->signal(*pid, SIGKILL);
  CHECK(f.end.get_future().get().signal == SIGKILL);
}

TEST_CASE("Children do not survive their spawner", "[spawner]") {
  Fixture f;
  const auto pid = f.spawner->spawn(f.shell("trap '' TERM; sleep 1000"));
  REQUIRE(pid.ok());
  f.spawner.reset();
  CHECK(::kill(*pid, 0) != 0);
}

TEST_CASE("An inherited descriptor is number 3 in the child", "[spawner]") {
  Fixture f;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  SpawnSpec spec = f.shell("echo hello >&3");
  spec.inherited_fd = ends[1];
  REQUIRE(f.spawner->spawn(spec).ok());
  char text[6] = {};
  CHECK(::read(ends[0], text, 5) == 5);
  CHECK(std::string(text) == "hello");
  f.end.get_future().get();
  ::close(ends[0]);
  ::close(ends[1]);
}
