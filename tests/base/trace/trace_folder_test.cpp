#include "base/trace/trace_folder.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace troupe;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("troupe-trace-" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

HostTrace host(int slot, int64_t step_ns) {
  HostTrace trace;
  trace.slot = slot;
  trace.node = "a";
  trace.groups = {"vision"};
  trace.actors = {{0, slot}};
  Span step;
  step.kind = SpanKind::kStep;
  step.name = "step";
  step.step = 7;
  step.end_ns = step_ns;
  trace.spans = {step};
  return trace;
}

}  // namespace

TEST_CASE("the newest window of a run folder is read, its hosts by slot") {
  const Folder run;
  CHECK(read_traces(run.path).error().code == ErrorCode::kNotFound);
  REQUIRE(write_host_trace(run.path, 1, 2, host(0, 5)).ok());
  fs::last_write_time(run.path / "trace" / "steps-00000001-00000002",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  REQUIRE(write_host_trace(run.path, 7, 9, host(1, 2000000)).ok());
  REQUIRE(write_host_trace(run.path, 7, 9, host(0, 1000000)).ok());
  const auto window = read_traces(run.path);
  REQUIRE(window.ok());
  CHECK(window->folder.ends_with("steps-00000007-00000009"));
  REQUIRE(window->hosts.size() == 2);
  CHECK(window->hosts[0].slot == 0);
  const std::string table = trace_table(window->hosts);
  CHECK(table.find("vision/1") != std::string::npos);
  CHECK(table.find("2.00") != std::string::npos);
}

TEST_CASE("a folder that is not there is told from one without a trace") {
  const Folder run;
  CHECK(read_traces(run.path).error().message.find(run.path.string() + " has no trace; `profile: ") == 0);
  const auto nowhere = read_traces(run.path / "nosuch");
  CHECK(nowhere.error().code == ErrorCode::kNotFound);
  CHECK(nowhere.error().message == "there is no folder '" + (run.path / "nosuch").string() + "'");
}

TEST_CASE("a file that is no trace is named") {
  const Folder run;
  REQUIRE(write_host_trace(run.path, 1, 2, host(0, 5)).ok());
  std::ofstream(run.path / "trace" / "steps-00000001-00000002" / "slot-3.json") << "{";
  const auto window = read_traces(run.path);
  REQUIRE_FALSE(window.ok());
  CHECK(window.error().message.find("slot-3.json") != std::string::npos);
}

TEST_CASE("a trace that cannot be written is an error with the path") {
  CHECK(write_host_trace("/proc/nowhere", 1, 2, host(0, 5)).error().message.find("/proc/nowhere/trace") !=
        std::string::npos);
}
