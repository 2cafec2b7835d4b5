#include "driver/run/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/checkpoint/checkpoint_folder.h"
#include "tests/driver/run/file_size_limit.h"

using namespace troupe;
using namespace troupe::driver;
namespace fs = std::filesystem;

namespace {
struct Root {
  Root() : path(fs::temp_directory_path() / ("troupe_run_folder_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
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

TEST_CASE("A folder that exists is refused without resume, and with it unless it is a run's, and left as it was") {
  Root root;
  const std::string path = root.path / "run";
  fs::create_directories(path);
  std::ofstream(path + "/mine") << "x";
  for (const bool resume : {false, true}) {
    auto folder = RunFolder::open(path, resume);
    REQUIRE_FALSE(folder.ok());
    CHECK(folder.error().message.find(path) != std::string::npos);
    CHECK(std::distance(fs::directory_iterator(path), fs::directory_iterator()) == 1);
  }
  std::ofstream(path + "/events.jsonl") << "{}\n";
  CHECK(RunFolder::open(path, true).ok());
}

TEST_CASE("A link to a folder that is not there is refused as such") {
  Root root;
  fs::create_symlink(root.path / "gone", root.path / "run");
  const auto folder = RunFolder::open(root.path / "run", true);
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().message == "run folder " + (root.path / "run").string() + " is a link to " +
                                      (root.path / "gone").string() + ", which is not there");
}

TEST_CASE("Room for the end of a run is held from its start, and what a failed save or export left goes with it") {
  Root root;
  const std::string path = root.path / "run";
  auto folder = RunFolder::open(path, false);
  REQUIRE(folder.ok());
  struct stat held {};
  REQUIRE(::stat((path + "/.reserve").c_str(), &held) == 0);
  CHECK(held.st_blocks * 512 >= 256 << 10);
  REQUIRE(begin_checkpoint(path, 10, Generation{1}).ok());
  fs::create_directories(path + "/export.parts");
  fs::create_directories(path + "/export.partial");
  fs::create_directories(path + "/checkpoints/step-00000005");
  CHECK((*folder)->make_room_for_end().ok());
  for (const char* gone : {"/.reserve", "/checkpoints/.step-00000010.g1", "/export.parts", "/export.partial"}) {
    INFO(gone);
    CHECK_FALSE(fs::exists(path + gone));
  }
  CHECK(fs::exists(path + "/checkpoints/step-00000005"));
  CHECK((*folder)->write_result({{"outcome", "failed"}}).ok());
  CHECK(fs::exists(path + "/result.json"));
}

TEST_CASE(
    "Without room for its end a run is refused, and the folder is as it was, but for what an unfinished save left") {
  Root root;
  const std::string path = root.path / "run";
  const auto refused = [&](bool resume) {
    const FileSizeLimit limit(128 << 10);  // a file cannot be as long as the reserve
    const auto folder = RunFolder::open(path, resume);
    return !folder.ok() && folder.error().message.find("no room for 256 KiB") != std::string::npos;
  };
  CHECK(refused(false));
  CHECK_FALSE(fs::exists(path));
  fs::create_directories(path);
  CHECK(refused(false));
  CHECK(fs::is_empty(path));
  {
    auto folder = RunFolder::open(path, false);
    REQUIRE(folder.ok());
    REQUIRE((*folder)->write_result({{"outcome", "failed"}}).ok());
    REQUIRE(begin_checkpoint(path, 10, Generation{1}).ok());
  }
  CHECK(refused(true));
  CHECK(fs::exists(path + "/result.json"));
  CHECK_FALSE(fs::exists(path + "/checkpoints/.step-00000010.g1"));
  CHECK_FALSE(fs::exists(path + "/.reserve"));
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

TEST_CASE(
    "The newest complete checkpoint is found, and newer ones with a manifest but without a file are passed over by "
    "name") {
  Root root;
  CHECK(latest_checkpoint_in(root.path).path.empty());
  for (const int64_t step : {10, 20}) {
    auto temporary = begin_checkpoint(root.path, step, Generation{1});
    REQUIRE(temporary.ok());
    std::ofstream(*temporary + "/text-0.safetensors") << "weights";
    CheckpointManifest manifest;
    manifest.step = step;
    manifest.groups.push_back({"text", {}, 0, false});
    REQUIRE(commit_checkpoint(*temporary, root.path, manifest).ok());
  }
  CHECK(latest_checkpoint_in(root.path).step == 20);
  fs::remove(root.path / "checkpoints/step-00000020/text-0.safetensors");
  fs::create_directories(root.path / "checkpoints/.step-00000030.g1");
  const LatestCheckpoint latest = latest_checkpoint_in(root.path);
  CHECK(latest.step == 10);
  CHECK(latest.path == (root.path / "checkpoints/step-00000010").string());
  REQUIRE(latest.passed_over.size() == 1);
  CHECK(latest.passed_over[0].find("step-00000020") != std::string::npos);
}
