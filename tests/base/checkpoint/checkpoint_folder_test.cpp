#include "base/checkpoint/checkpoint_folder.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace troupe;
namespace fs = std::filesystem;

namespace {

/// A run folder of its own, removed at the end.
struct RunFolder {
  RunFolder() {
    std::string pattern = (fs::temp_directory_path() / "troupe-run-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~RunFolder() {
    std::error_code ec;
    fs::remove_all(path, ec);
  }
  std::string path;
};

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string save(const std::string& run, int64_t step, const std::string& content = "weights") {
  const auto temporary = begin_checkpoint(run, step, Generation(1));
  REQUIRE(temporary.ok());
  write(*temporary + "/text-0.safetensors", content);
  CheckpointManifest manifest;
  manifest.step = step;
  manifest.dtype = "fp32";
  const auto folder = commit_checkpoint(*temporary, run, manifest);
  REQUIRE(folder.ok());
  CHECK_FALSE(fs::exists(*temporary));
  return *folder;
}

}  // namespace

TEST_CASE("a committed checkpoint has its final name, a manifest and checksums that verify") {
  const RunFolder run;
  const std::string folder = save(run.path, 10);
  CHECK(folder == run.path + "/checkpoints/step-00000010");
  const auto manifest = read_checkpoint(folder, true);
  REQUIRE(manifest.ok());
  CHECK(manifest->step == 10);
  REQUIRE(manifest->files.size() == 1);
  CHECK(manifest->files[0].bytes == 7);
}

TEST_CASE("every rank may begin the same checkpoint and meets in one temporary folder") {
  const RunFolder run;
  const auto first = begin_checkpoint(run.path, 3, Generation(2)),
             second = begin_checkpoint(run.path, 3, Generation(2));
  REQUIRE((first.ok() && second.ok()));
  CHECK(*first == *second);
  CHECK(*first != *begin_checkpoint(run.path, 3, Generation(3)));
}

TEST_CASE("an unfinished rank keeps a checkpoint from being committed") {
  const RunFolder run;
  const std::string temporary = *begin_checkpoint(run.path, 1, Generation(1));
  CHECK_FALSE(commit_checkpoint(temporary, run.path, {}).ok());
  write(temporary + "/text-0.safetensors.partial", "half");
  const auto refused = commit_checkpoint(temporary, run.path, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("text-0.safetensors.partial") != std::string::npos);
}

TEST_CASE("the latest checkpoint is the newest complete one") {
  const RunFolder run;
  CHECK(latest_checkpoint(run.path).error().code == ErrorCode::kNotFound);
  const std::string ninth = save(run.path, 9);
  const std::string tenth = save(run.path, 10);
  REQUIRE(begin_checkpoint(run.path, 11, Generation(1)).ok());
  CHECK(*latest_checkpoint(run.path) == tenth);
  SECTION("not one whose file was cut off") {
    fs::resize_file(tenth + "/text-0.safetensors", 3);
    CHECK(*latest_checkpoint(run.path) == ninth);
  }
  SECTION("not one without a manifest") {
    fs::remove(tenth + "/manifest.json");
    CHECK(*latest_checkpoint(run.path) == ninth);
  }
}

TEST_CASE("a changed byte is found when checksums are verified") {
  const RunFolder run;
  const std::string folder = save(run.path, 4, "weights");
  write(folder + "/text-0.safetensors", "wEights");
  CHECK(read_checkpoint(folder, false).ok());
  const auto refused = read_checkpoint(folder, true);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kDataLoss);
  CHECK(refused.error().message.find("text-0.safetensors") != std::string::npos);
}

TEST_CASE("saving a step again replaces its checkpoint") {
  const RunFolder run;
  save(run.path, 5, "old");
  const std::string folder = save(run.path, 5, "newer");
  CHECK(read_checkpoint(folder, true)->files[0].bytes == 5);
}

TEST_CASE("what an interrupted save left does not get into a later one of the same step") {
  const RunFolder run;
  const std::string kept = save(run.path, 5), left = *begin_checkpoint(run.path, 6, Generation(1));
  write(left + "/text-3.safetensors.partial", "half");
  write(left + "/text-2.safetensors", "of another layout");
  REQUIRE(discard_unfinished(run.path).ok());
  const std::string folder = save(run.path, 6);
  CHECK(read_checkpoint(folder, true)->files.size() == 1);
  CHECK(read_checkpoint(kept, true).ok());
}

TEST_CASE("a run without checkpoints has no unfinished ones to discard") {
  CHECK(discard_unfinished(RunFolder().path).ok());
}

TEST_CASE("pruning keeps the newest complete checkpoints and removes remains of unfinished ones") {
  const RunFolder run;
  for (const int64_t step : {1, 2, 3, 100000000}) save(run.path, step);
  const std::string unfinished = *begin_checkpoint(run.path, 4, Generation(1));
  fs::remove(run.path + "/checkpoints/step-00000003/manifest.json");
  REQUIRE(prune_checkpoints(run.path, 2).ok());
  CHECK(fs::exists(run.path + "/checkpoints/step-100000000"));
  CHECK(fs::exists(run.path + "/checkpoints/step-00000002"));
  CHECK_FALSE(fs::exists(run.path + "/checkpoints/step-00000003"));
  CHECK_FALSE(fs::exists(run.path + "/checkpoints/step-00000001"));
  CHECK_FALSE(fs::exists(unfinished));
}

TEST_CASE("Free disk is that of the nearest folder that is there; a file system that does not tell has room") {
  CHECK(free_disk_bytes("/tmp/not/there/yet") > 0);
  CHECK(free_disk_bytes("/proc/x") == UINT64_MAX);
}
