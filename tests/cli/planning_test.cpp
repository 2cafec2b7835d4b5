#include "cli/planning.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/checkpoint/checkpoint_folder.h"
#include "base/config/job_spec_parser.h"

using namespace troupe;
using namespace troupe::cli;
namespace fs = std::filesystem;

TEST_CASE("The run folder is what was asked for, else runs/NAME-ID, the resumed one, or runs/NAME with auto") {
  const std::string here = fs::current_path();
  CHECK(*choose_run_folder("job", "some/../dir", "") == here + "/dir");
  CHECK(*choose_run_folder("job", "dir/", "") == here + "/dir");
  CHECK(absolute_folder("/") == "/");
  const std::string fresh = *choose_run_folder("job", "", "");
  CHECK(fresh.find(here + "/runs/job-") == 0);
  CHECK(fresh != *choose_run_folder("job", "", ""));
  CHECK(*choose_run_folder("job", "", "auto") == here + "/runs/job");
  CHECK(*choose_run_folder("job", "", here) == here);
}

TEST_CASE("Resuming from a folder that is not there is refused by name") {
  const auto folder = choose_run_folder("job", "", "/nonexistent/run");
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().message.find("/nonexistent/run") != std::string::npos);
}

TEST_CASE(
    "A disk that does not hold the checkpoints at a time, and the export with its parts, is refused with numbers") {
  JobPlan plan;
  plan.parameters = 1 << 20;
  plan.groups.resize(1);
  plan.groups[0].trained_parameters = 1 << 20;
  JobSpec spec;
  spec.model.dtype = DType::kFp32;
  spec.checkpoint.every = 10;
  spec.checkpoint.export_at_end = true;
  spec.checkpoint.keep = 2;
  spec.training.steps = 100;
  CHECK(check_disk(plan, spec, "run", 36 << 20).ok());  // while the third is written; 24 + 8 at the end
  const Status refused = check_disk(plan, spec, "run", (36 << 20) - 1);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find(
            "3 checkpoints at a time take about 36 MiB and the export, with its parts, 8 MiB") != std::string::npos);
  spec.training.steps = 10;  // saves once
  CHECK(check_disk(plan, spec, "run", 20 << 20).ok());
  CHECK_FALSE(check_disk(plan, spec, "run", (20 << 20) - 1).ok());
  spec.training.steps.reset();  // by epochs: the data will say how many
  CHECK(check_disk(plan, spec, "run", 36 << 20).ok());
  spec.checkpoint.every = 0;
  CHECK(check_disk(plan, spec, "run", 8 << 20).ok());
  CHECK_FALSE(check_disk(plan, spec, "run", (8 << 20) - 1).ok());
  spec.checkpoint.export_at_end = false;
  CHECK(check_disk(plan, spec, "run", 0).ok());
}

TEST_CASE("More ranks than slots are refused where the placement was written") {
  const std::string file = fs::temp_directory_path() / ("troupe_planning_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file) << "model: {path: " TROUPE_SOURCE_DIR
                         "/configs/models/qwen2.5-vl-3b, init: random}\n"
                         "data: {synthetic: {images: 1}}\ntraining: {steps: 1}\n"
                         "groups: {vision: {mesh: {sp: 2}}, text: {mesh: {tp: 2}}}\nplacement: disjoint\n";
  const auto manifest =
      parse_manifest("launch: local\nnodes: [{name: a, devices: {cpu: 3}}]\n", "c.yaml", Environment());
  REQUIRE(manifest.ok());
  const auto refused = plan_run(*load_job_spec(file), &*manifest);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message ==
        file + ":5: key 'placement': disjoint asks for 4 slots (vision: 2, text: 2), 3 exist");
  fs::remove(file);
}

TEST_CASE("The actor program lies beside this one unless another is named") {
  CHECK(actor_program("") == fs::path(own_program()).replace_filename("troupe-actor").string());
  CHECK(actor_program("/bin/true") == "/bin/true");
}

TEST_CASE("Without a manifest this machine is the one node") {
  const auto workers = expected_workers(nullptr);
  REQUIRE(workers.size() == 1);
  CHECK(workers[0].node == kLocalNode);
}

TEST_CASE("The steps of a run that is resumed are read from its folder, before they are written over") {
  const std::string run = fs::temp_directory_path() / ("troupe_steps_of_run_" + std::to_string(::getpid()));
  fs::remove_all(run);
  fs::create_directories(run);
  CHECK(steps_of_run(run, "auto") == 0);
  const auto spec = load_job_spec_text("model: {path: " TROUPE_SOURCE_DIR
                                       "/configs/models/qwen2.5-vl-3b, init: random}\n"
                                       "data: {synthetic: {images: 1}}\ntraining: {steps: 40}\n",
                                       run + "/written.yaml");
  REQUIRE(spec.ok());
  std::ofstream(run + "/job.yaml") << job_spec_to_yaml(*spec);
  CHECK(steps_of_run(run, "auto") == 40);
  CHECK(steps_of_run("/nowhere", run) == 40);
  CHECK(steps_of_run(run, "") == 0);
  std::ofstream(run + "/job.yaml") << "training: {steps";
  CHECK(steps_of_run(run, "auto") == 0);
  fs::remove_all(run);
}

TEST_CASE("A resume that does not fit is refused with both layouts before the run folder is touched") {
  const std::string run = fs::temp_directory_path() / ("troupe_check_resume_" + std::to_string(::getpid()));
  fs::remove_all(run);
  JobSpec spec;
  spec.groups.resize(1);
  spec.groups[0].name = "text";
  spec.training.global_batch = 4;
  CHECK(check_resume(spec, run, "").ok());
  CHECK(check_resume(spec, run, "auto").ok());
  CHECK(check_resume(spec, run, run).error().message.find("no complete checkpoint") != std::string::npos);

  auto temporary = begin_checkpoint(run, 10, Generation{1});
  REQUIRE(temporary.ok());
  std::ofstream(*temporary + "/text-0.safetensors") << "weights";
  spec.model.dtype = DType::kFp32;
  REQUIRE(commit_checkpoint(*temporary, run, manifest_of_spec(spec, 10)).ok());
  CHECK(check_resume(spec, run, "auto").ok());
  CHECK(check_resume(spec, "/nowhere", run).ok());
  JobSpec other = spec;
  other.groups[0].zero = spec.groups[0].zero == 0 ? 1 : 0;
  const Status layout = check_resume(other, run, "auto");
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.error().message.find("zero 0") != std::string::npos);
  CHECK(layout.error().message.find("zero 1") != std::string::npos);
  other = spec;
  other.training.global_batch = 8;
  const Status batch = check_resume(other, run, "auto");
  REQUIRE_FALSE(batch.ok());
  CHECK(batch.error().message.find("training.global_batch 4 (this job: 8)") != std::string::npos);
  other = spec;
  other.training.seed = 5;
  CHECK(check_resume(other, run, "auto").error().message.find("training.seed 1 (this job: 5)") != std::string::npos);
  fs::remove(run + "/checkpoints/step-00000010/text-0.safetensors");
  CHECK(check_resume(spec, run, "auto").error().message.find("text-0.safetensors") != std::string::npos);
  fs::remove_all(run);
}
