#include "driver/run/run_folder.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::driver;
namespace fs = std::filesystem;

namespace {
struct Root {
  Root() : path(fs::temp_directory_path() / ("troupe_run_folder_" + std::to_string(::getpid()))) { fs::create_directories(path); }
  ~Root() { fs::remove_all(path); }
  fs::path path;
};
}  // namespace

TEST_CASE("A fresh folder gets its files and a refused job leaves nothing") {
  Root root;
  const std::string path = root.path / "run";
  auto folder = RunFolder::open(path, false);
  REQUIRE(folder.ok());
  CHECK((*folder)->write_job("name: x\n").ok());
  (*folder)->append_event("planned", 1, {{"job", "j"}});
  CHECK(fs::exists(path + "/job.yaml"));
  std::ifstream events(path + "/events.jsonl");
  std::string line;
  std::getline(events, line);
  const auto event = nlohmann::json::parse(line);
  CHECK(event["kind"] == "planned");
  CHECK(event["generation"] == 1);
  CHECK(event["job"] == "j");
  CHECK(event.contains("time"));
  (*folder)->discard();
  folder->reset();
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("A folder that exists is refused without resume and left as it was") {
  Root root;
  const std::string path = root.path / "run";
  fs::create_directories(path);
  std::ofstream(path + "/mine") << "x";
  auto folder = RunFolder::open(path, false);
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().message.find(path) != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(path), fs::directory_iterator()) == 1);
  CHECK(RunFolder::open(path, true).ok());
}

TEST_CASE("A folder in use is refused even with resume") {
  Root root;
  const std::string path = root.path / "run";
  auto first = RunFolder::open(path, false);
  REQUIRE(first.ok());
  for (bool resume : {false, true}) {
    auto second = RunFolder::open(path, resume);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().message.find("in use") != std::string::npos);
  }
  first->reset();
  auto continued = RunFolder::open(path, true);
  REQUIRE(continued.ok());
  CHECK_FALSE((*continued)->fresh());
  (*continued)->discard();
  CHECK(fs::exists(path));
}

TEST_CASE("The newest complete checkpoint is found and half-written ones are not") {
  Root root;
  CHECK(latest_checkpoint_in(root.path).path.empty());
  for (const char* name : {"step-00000010", "step-00000020", "step-00000030.tmp", "step-00000040", "other"})
    fs::create_directories(root.path / "checkpoints" / name);
  std::ofstream(root.path / "checkpoints/step-00000010/manifest.json") << "{}";
  std::ofstream(root.path / "checkpoints/step-00000020/manifest.json") << "{}";
  std::ofstream(root.path / "checkpoints/step-00000030.tmp/manifest.json") << "{}";
  const LatestCheckpoint latest = latest_checkpoint_in(root.path);
  CHECK(latest.step == 20);
  CHECK(latest.path == (root.path / "checkpoints/step-00000020").string());
}
