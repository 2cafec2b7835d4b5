#include "driver/run/folder_status.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/run/run_folder.h"

using namespace troupe;
using namespace troupe::driver;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Run {
  Run() : path(fs::temp_directory_path() / ("troupe_folder_status_" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    auto opened = RunFolder::open(path, false);
    REQUIRE(opened.ok());
    folder = std::move(*opened);
    folder->append_event("planned", 1, {{"job", "j1"}, {"name", "shapes"}, {"total_steps", 40}});
    folder->append_event("phase", 1, {{"phase", "running"}});
    folder->append_event("spawned", 1,
                         {{"hosts",
                           {{{"node", "a"}, {"slot", 0}, {"pid", 7}, {"phase", "starting"}},
                            {{"node", "a"}, {"slot", 1}, {"pid", 8}, {"phase", "starting"}}}}});
  }
  ~Run() { fs::remove_all(path); }
  json status() const {
    auto status = folder_status(path);
    REQUIRE(status.ok());
    return *status;
  }
  fs::path path;
  std::unique_ptr<RunFolder> folder;
};

}  // namespace

TEST_CASE("Hosts of a finished run are shown as exited or ended, not as they started") {
  Run run;
  run.folder->append_event("host_exited", 1, {{"node", "a"}, {"slot", 0}, {"pid", 7}});
  REQUIRE(run.folder->write_result({{"outcome", "done"}, {"steps_done", 20}, {"name", "n"}}).ok());
  run.folder.reset();
  const json status = run.status();
  CHECK(status["phase"] == "ended");
  CHECK(status["job"] == "j1");
  CHECK(status["step"] == 20);
  CHECK(status["hosts"][0]["phase"] == "exited");
  CHECK(status["hosts"][1]["phase"] == "ended");
}

TEST_CASE("A folder that a run holds is in its last phase, one that nobody holds is lost") {
  Run run;
  CHECK(run.status()["phase"] == "running");
  CHECK(run.status()["hosts"][0]["phase"] == "running");
  run.folder.reset();
  CHECK(run.status()["phase"] == "lost");
  CHECK(run.status()["hosts"][0]["phase"] == "lost");
  CHECK(run.status()["job"] == "j1");
  CHECK(run.status()["name"] == "shapes");
  CHECK(run.status()["total_steps"] == 40);
}

TEST_CASE("The steps of a run by epochs are known from where its hosts counted them") {
  Run run;
  run.folder->append_event("planned", 2, {{"job", "j2"}, {"name", "shapes"}, {"total_steps", 0}});
  CHECK(run.status()["total_steps"] == 0);
  run.folder->append_event("training_plan", 2, {{"steps", 63}});
  CHECK(run.status()["total_steps"] == 63);
}

TEST_CASE("Of a loop of one's own the steps are known when it has said them, whatever ran in the folder before") {
  Run run;
  REQUIRE(run.folder->append_metrics("{\"step\": 40, \"loss\": 1.5}\n").ok());
  run.folder->append_event("planned", 2, {{"job", "j2"}, {"name", "shapes"}});
  CHECK_FALSE(run.status().contains("total_steps"));
  CHECK_FALSE(run.status().contains("step"));
  REQUIRE(run.folder->write_result({{"outcome", "failed"}, {"name", "n"}}).ok());
  CHECK_FALSE(run.status().contains("step"));
  REQUIRE(run.folder->write_result({{"outcome", "done"}, {"steps_done", 20}, {"name", "n"}}).ok());
  CHECK(run.status()["step"] == 20);
}

TEST_CASE("The step of a run that was killed is the last of its metrics, evaluations and a cut line left aside") {
  Run run;
  CHECK(run.status()["step"] == 0);
  for (int step = 1; step <= 3000; ++step)
    REQUIRE(run.folder->append_metrics("{\"step\": " + std::to_string(step) + ", \"loss\": 1.5, \"grad_norm\": 2.5}\n")
                .ok());
  REQUIRE(run.folder->append_metrics("{\"step\": 2999, \"eval_loss\": 1.0}\n{\"step\": 30").ok());
  run.folder.reset();
  CHECK(run.status()["phase"] == "lost");
  CHECK(run.status()["step"] == 3000);
}

TEST_CASE("A folder without events is no run folder") {
  const auto status = folder_status("/");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("events.jsonl") != std::string::npos);
}
