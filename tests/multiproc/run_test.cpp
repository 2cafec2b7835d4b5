#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/multiproc/sandbox.h"

using namespace troupe::test;
namespace fs = std::filesystem;
using std::chrono::seconds;

namespace {

/// The folder of the driver's socket, as the run's folder names it.
std::string socket_folder(const Sandbox& box) {
  const std::string address = box.text("run/.driver");
  return address.size() > 5 ? fs::path(address.substr(5)).parent_path().string() : "";
}

bool step_done(const Sandbox& box) { return box.text("run/metrics.jsonl").find('\n') != std::string::npos; }

}  // namespace

TEST_CASE("A run of two groups ends with exit code 0 and every file of the run folder") {
  Sandbox box;
  const Ended run = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  INFO(run.output);
  REQUIRE(run.code == 0);
  CHECK(run.output.find("step 5/5") != std::string::npos);
  CHECK(run.output.find(box.path("run") + "/metrics.jsonl") != std::string::npos);
  const auto lines = box.json_lines("run/metrics.jsonl");
  REQUIRE(lines.size() == 5);
  CHECK(lines[4]["step"] == 5);
  CHECK(lines[0]["peak_memory_mib"] == nlohmann::json({{"local:0", 1}, {"local:1", 2}}));
  CHECK(lines[0]["activation_peak_mib"].size() == 2);
  const auto result = box.json("run/result.json");
  CHECK(result["outcome"] == "done");
  CHECK(result["cause"]["kind"] == "none");
  CHECK(result["steps_done"] == 5);
  CHECK(result["results"]["fake"] == true);
  CHECK(box.text("run/logs/local-0.log").find("OMP_NUM_THREADS=") != std::string::npos);
  CHECK(box.text("run/job.yaml").find("global_batch") != std::string::npos);
  bool spawned = false;
  for (const auto& event : box.json_lines("run/events.jsonl")) {
    CHECK(event.contains("time"));
    CHECK(event["generation"] == 1);
    if (event["kind"] != "spawned") continue;
    spawned = true;
    for (const auto& host : event["hosts"])
      for (const char* key : {"node", "slot", "pid", "group", "rank"}) CHECK(host.contains(key));
  }
  CHECK(spawned);
}

TEST_CASE("The first cause is named when a rank dies, exits or throws, and nobody else is blamed") {
  Sandbox box;
  const std::string fault = GENERATE("crash 1 3", "exit 1 3", "throw 1 3");
  box.script("steps 50\n" + fault + "\n");
  const Ended run = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  INFO(run.output);
  REQUIRE(run.code == 1);
  const auto result = box.json("run/result.json");
  CHECK(result["outcome"] == "failed");
  // The dead rank's last report may have died with it.
  CHECK(result["steps_done"] >= 1);
  CHECK(result["steps_done"] <= 2);
  CHECK(result["cause"]["slot"] == 1);
  CHECK(result["cause"]["kind"] == (fault[0] == 'c' ? "host_killed" : fault[0] == 'e' ? "host_exited" : "host_error"));
  const std::string message = result["cause"]["message"];
  for (const std::string& part :
       {std::string("text"), std::string("node local"), std::string("pid "), box.path("run") + "/logs/local-1.log"})
    CHECK(message.find(part) != std::string::npos);
  if (fault[0] == 'c') CHECK(message.find("SIGKILL") != std::string::npos);
  if (fault[0] == 'e') CHECK(message.find("status 3") != std::string::npos);
  if (fault[0] == 't') CHECK(message.find("throws as it was told") != std::string::npos);
  if (fault[0] != 't') CHECK(message.find("step 3, instruction 'forward text unit 0'") != std::string::npos);
  CHECK(run.output.find(message) != std::string::npos);
  for (int pid : host_pids(box)) CHECK_FALSE(alive(pid));
}

TEST_CASE("Ctrl-C, even twice, stops at once with exit code 130 and a result") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  REQUIRE(eventually([&] { return step_done(box); }));
  const auto before = std::chrono::steady_clock::now();
  box.signal_alone(pid, SIGINT);
  box.signal_alone(pid, SIGINT);
  const Ended run = box.wait(pid, seconds(20));
  INFO(run.output);
  CHECK(run.code == 130);
  CHECK(std::chrono::steady_clock::now() - before < seconds(15));
  CHECK(box.json("run/result.json")["cause"]["kind"] == "user_interrupt");
  const auto pids = host_pids(box);
  CHECK(pids.size() == 2);
  for (int host : pids) CHECK_FALSE(alive(host));
}

TEST_CASE("SIGTERM saves a checkpoint, exits with 75, and --resume auto goes on from it") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  REQUIRE(eventually([&] { return step_done(box); }));
  box.signal_alone(pid, SIGTERM);
  const Ended run = box.wait(pid);
  INFO(run.output);
  REQUIRE(run.code == 75);
  CHECK(box.json("run/result.json")["outcome"] == "stopped");
  CHECK(fs::exists(box.path("run/checkpoints")));
  box.script("steps 5\n");
  const Ended again = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  CHECK(again.code == 2);
  const Ended resumed = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--resume", "auto"});
  INFO(resumed.output);
  CHECK(resumed.output.find("resuming from " + box.path("run") + "/checkpoints/step-") != std::string::npos);
}

TEST_CASE("SIGTERM before the first step exits with 75, and --resume auto starts afresh") {
  Sandbox box;
  box.script("steps 5\nload_ms 60000\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  REQUIRE(eventually([&] { return host_pids(box).size() == 2; }));
  box.signal_alone(pid, SIGTERM);
  const Ended run = box.wait(pid);
  INFO(run.output);
  REQUIRE(run.code == 75);
  CHECK(box.json("run/result.json")["cause"]["kind"] == "stopped");
  CHECK(box.json("run/result.json")["steps_done"] == 0);
  box.script("steps 5\n");
  const Ended again = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--resume", "auto"});
  INFO(again.output);
  CHECK(again.code == 0);
  CHECK(box.json("run/result.json")["steps_done"] == 5);
}

TEST_CASE("kill -9 of troupe run leaves no process and no socket") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  REQUIRE(eventually([&] { return step_done(box); }));
  const std::string folder = socket_folder(box);
  REQUIRE(fs::exists(folder));
  // The janitor is not to be taken for a second run.
  CHECK(processes_with("--run-dir " + box.path("run")) == std::vector<int>{pid});
  CHECK((fs::status(folder).permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
  const auto pids = host_pids(box);
  REQUIRE(pids.size() == 2);
  box.signal_alone(pid, SIGKILL);
  CHECK(box.wait(pid).signal == SIGKILL);
  CHECK(eventually([&] { return !alive(pids[0]) && !alive(pids[1]); }, seconds(10)));
  CHECK(eventually([&] { return !fs::exists(folder); }, seconds(10)));
  CHECK(processes_with(box.path("run")).empty());
}

TEST_CASE("A check that is ended or killed takes its actor program with it") {
  Sandbox box;
  const int number = GENERATE(SIGTERM, SIGKILL);
  const int pid = box.start({"check", box.path("job.yaml")});
  REQUIRE(eventually([&] { return box.output(pid).find("checking as ") != std::string::npos; }));
  const std::string said = box.output(pid);
  const int actor = std::stoi(said.substr(said.find("checking as ") + 12));
  CHECK(alive(actor));
  box.signal_alone(pid, number);
  const Ended check = box.wait(pid);
  CHECK(check.code == (number == SIGTERM ? 130 : 0));
  CHECK(check.signal == (number == SIGTERM ? 0 : SIGKILL));
  CHECK(eventually([&] { return !alive(actor); }, seconds(10)));
}

TEST_CASE("A refusal while loading exits with 2 and leaves no run folder") {
  Sandbox box;
  box.script("refuse 1\n");
  const Ended run = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  INFO(run.output);
  CHECK(run.code == 2);
  CHECK(run.output.find("tensor 'x' is missing") != std::string::npos);
  CHECK_FALSE(fs::exists(box.path("run")));
}

TEST_CASE("An actor program that is not there is refused before anything is written") {
  Sandbox box;
  const Ended run = box.wait(box.start_program({TROUPE_BINARY_DIR "/bin/troupe", "run", box.path("job.yaml"),
                                                "--run-dir", box.path("run"), "--actor", "/nonexistent/actor"}));
  CHECK(run.code == 2);
  CHECK(run.output.find("/nonexistent/actor") != std::string::npos);
  CHECK_FALSE(fs::exists(box.path("run")));
}

TEST_CASE("Status and logs of a run folder work while it runs and after its end") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run")});
  REQUIRE(eventually([&] { return step_done(box); }));
  const Ended live = box.run({"status", box.path("run"), "--json"});
  INFO(live.output);
  const auto status = nlohmann::json::parse(live.output);
  CHECK(status["phase"] == "running");
  CHECK(status["hosts"].size() == 2);
  CHECK(status["run_folder"] == box.path("run"));
  const Ended logs = box.run({"logs", box.path("run"), "--group", "text", "--rank", "0"});
  CHECK(logs.output.find("fake host of slot 1") != std::string::npos);
  CHECK(logs.output.find("fake host of slot 0") == std::string::npos);
  std::istringstream lines(box.run({"logs", box.path("run"), "--group", "text", "--json"}).output);
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    CHECK(object["file"] == box.path("run") + "/logs/local-1.log");
    found = found || object["line"].get<std::string>().find("fake host of slot 1") != std::string::npos;
  }
  CHECK(found);
  const int follower = box.start({"logs", box.path("run") + "/", "--follow"});
  CHECK(eventually([&] { return box.output(follower).find("fake host of slot 1") != std::string::npos; }));
  box.signal_alone(pid, SIGINT);
  box.wait(pid);
  const Ended followed = box.wait(follower);
  INFO(followed.output);
  CHECK(followed.output.find("troupe: no job") == std::string::npos);
  const auto ended = nlohmann::json::parse(box.run({"status", box.path("run"), "--json"}).output);
  CHECK(ended["phase"] == "ended");
  CHECK(ended["result"]["outcome"] == "cancelled");
}

TEST_CASE("Usage errors, unknown verbs and verbs that are not built exit with 2, help and version with 0") {
  Sandbox box;
  CHECK(box.run({"run"}).code == 2);
  CHECK(box.run({"dance"}).code == 2);
  CHECK(box.run({"statis"}).output.find("unknown verb 'statis'; did you mean 'status'?") != std::string::npos);
  const std::string valid = box.run({"dance"}).output;
  CHECK(valid.find(
            "valid: run, plan, eval, check, convert, driver, worker, submit, status, logs, trace, cancel, bench\n") !=
        std::string::npos);
  CHECK(box.run({"compar"}).output.find("compare") == std::string::npos);
  CHECK(box.wait(box.start_program({TROUPE_BINARY_DIR "/bin/troupe"})).code == 2);
  for (const char* verb : {"scale", "checkpoint", "compare", "import", "export"}) {
    const Ended ended = box.run({verb, "x"});
    CHECK(ended.code == 2);
    CHECK(ended.output.find(verb) != std::string::npos);
  }
  for (const char* verb :
       {"run", "plan", "eval", "convert", "driver", "worker", "submit", "status", "logs", "cancel", "bench"}) {
    const Ended ended = box.wait(box.start_program({TROUPE_BINARY_DIR "/bin/troupe", verb, "--help"}));
    CHECK(ended.code == 0);
    CHECK(ended.output.find("Example") != std::string::npos);
  }
  CHECK(box.wait(box.start_program({TROUPE_BINARY_DIR "/bin/troupe", "--version"})).output.find("troupe 0.") !=
        std::string::npos);
}

TEST_CASE("What standard output did not take makes the exit code 1, with a line that says so") {
  Sandbox box;
  REQUIRE(box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run")}).code == 0);
  const auto into_full = [&](const std::string& words) {
    return box.wait(box.start_program({"/bin/sh", "-c", TROUPE_BINARY_DIR "/bin/troupe " + words + " > /dev/full"}));
  };
  for (const std::string& words :
       {"plan " + box.path("job.yaml"), "plan --json " + box.path("job.yaml"), "status --json " + box.path("run"),
        std::string("--version"), std::string("plan --help")}) {
    INFO(words);
    const Ended ended = into_full(words);
    CHECK(ended.code == 1);
    CHECK(ended.output.find("troupe: standard output cannot be written") != std::string::npos);
  }
  CHECK(into_full("plan --json " + box.path("none.yaml")).code == 2);
}

TEST_CASE("A reader that has enough ends a command without a word") {
  Sandbox box;
  REQUIRE(box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run")}).code == 0);
  {
    std::ofstream log(box.path("run") + "/logs/local-1.log", std::ios::app);  // more than a pipe holds
    for (int i = 0; i < 20000; ++i) log << "a line of some length, so that there are many bytes\n";
  }
  for (const std::string words : {"logs ", "logs --json "}) {
    INFO(words);
    const Ended ended = box.wait(box.start_program({"/bin/sh", "-c",
                                                    "(" TROUPE_BINARY_DIR "/bin/troupe " + words + box.path("run") +
                                                        "; echo code $? >&2) | head -n 1 >/dev/null"}));
    CHECK(ended.output == "code 141\n");
  }
}

TEST_CASE("With --json a command line that is not understood is answered with an object too") {
  Sandbox box;
  const auto answer = [&](std::vector<std::string> words) {
    words.insert(words.begin(), TROUPE_BINARY_DIR "/bin/troupe");
    const Ended ended = box.wait(box.start_program(words));
    CHECK(ended.code == 2);
    const size_t object = ended.output.find("{\"error\"");
    REQUIRE(object != std::string::npos);
    const auto error =
        nlohmann::json::parse(ended.output.substr(object, ended.output.find('\n', object) - object))["error"];
    CHECK(error["exit_code"] == 2);
    return error["message"].get<std::string>();
  };
  CHECK(answer({"statis", "--json"}).find("did you mean 'status'?") != std::string::npos);
  CHECK(answer({"run", "--json"}).find("JOB") != std::string::npos);
  CHECK(answer({"run", "job.yaml", "--json", "--frobnicate"}).find("--frobnicate") != std::string::npos);
  CHECK(answer({"compare", "--json"}).find("not built yet") != std::string::npos);
  CHECK(answer({"bench", "stp", "--json"}).find("unknown bench 'stp'") != std::string::npos);
}

TEST_CASE("No driver is exit code 3") {
  Sandbox box;
  const Ended ended = box.run({"status", "--driver", "unix:" + box.path("none.sock")});
  CHECK(ended.code == 3);
  CHECK(ended.output.find(box.path("none.sock")) != std::string::npos);
  const Ended nowhere = box.run({"status", "abc"});
  INFO(nowhere.output);
  CHECK(nowhere.code == 3);
  CHECK(nowhere.output.find("there is no folder 'abc', and no driver was named") != std::string::npos);
  CHECK(box.run({"logs", "abc"}).output.find("there is no folder 'abc', and no driver was named") != std::string::npos);
  std::ofstream(box.path("new.yaml"))
      << "launch: local\nnodes: [{name: a, devices: {cpu: 1}}, {name: b, devices: {cpu: 1}}]\n";
  const Ended never = box.run({"submit", box.path("job.yaml"), "--cluster", box.path("new.yaml")});
  INFO(never.output);
  CHECK(never.code == 3);
  CHECK(never.output.find("troupe driver --cluster") != std::string::npos);
  const Ended worker = box.run({"worker", "--cluster", box.path("new.yaml"), "--node", "zz"});
  INFO(worker.output);
  CHECK(worker.code == 2);
  CHECK(worker.output.find("no node 'zz'; valid: a, b") != std::string::npos);
}
