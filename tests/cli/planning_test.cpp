#include "cli/planning.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

using namespace troupe;
using namespace troupe::cli;
namespace fs = std::filesystem;

TEST_CASE("The run folder is what was asked for, else runs/NAME-ID, the resumed one, or runs/NAME with auto") {
  const std::string here = fs::current_path();
  CHECK(*choose_run_folder("job", "some/../dir", "") == here + "/dir");
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

TEST_CASE("The actor program lies beside this one unless another is named") {
  CHECK(actor_program("") == fs::path(own_program()).replace_filename("troupe-actor").string());
  CHECK(actor_program("/bin/true") == "/bin/true");
}

TEST_CASE("Without a manifest this machine is the one node") {
  const auto workers = expected_workers(nullptr);
  REQUIRE(workers.size() == 1);
  CHECK(workers[0].node == kLocalNode);
}
