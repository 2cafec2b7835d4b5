#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "tests/multiproc/sandbox.h"

using namespace troupe::test;
namespace fs = std::filesystem;
using std::chrono::seconds;

namespace {

nlohmann::json status_of(Sandbox& box, const std::string& manifest) {
  return nlohmann::json::parse(box.run({"status", "--cluster", manifest, "--json"}).output, nullptr, false);
}

bool driver_ready(Sandbox& box, int driver) {
  return eventually([&] { return box.output(driver).find("listens on") != std::string::npos; });
}

/// A driver and, with launch: local, its workers.
int start_driver(Sandbox& box, const std::string& manifest) {
  const int driver = box.start({"driver", "--cluster", manifest});
  REQUIRE(driver_ready(box, driver));
  return driver;
}

}  // namespace

TEST_CASE("Two workers on this machine act as two nodes over TLS with a token") {
  Sandbox box;
  const std::string manifest = box.manifest("local");
  const Ended run = box.run({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--cluster", manifest});
  INFO(run.output);
  REQUIRE(run.code == 0);
  CHECK(fs::exists(box.path("run/logs/a-0.log")));
  CHECK(fs::exists(box.path("run/logs/b-0.log")));
  for (const char* file : {"token", "driver.key", "driver.crt"}) {
    const fs::perms mode = fs::status(box.path("cluster.secrets/") + file).permissions();
    CHECK((mode & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
  }
  CHECK(eventually([&] { return processes_with(manifest).empty(); }, seconds(10)));
}

TEST_CASE("kill -9 of a run with worker processes leaves none of them") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const std::string manifest = box.manifest("local");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--cluster", manifest});
  REQUIRE(eventually([&] { return box.text("run/metrics.jsonl").find('\n') != std::string::npos; }));
  CHECK(processes_with(manifest).size() >= 3);
  box.signal_alone(pid, SIGKILL);
  box.wait(pid);
  CHECK(eventually([&] { return processes_with(manifest).empty(); }, seconds(10)));
}

TEST_CASE("A worker that is killed ends the job with its node named") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const std::string manifest = box.manifest("local");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--cluster", manifest});
  REQUIRE(eventually([&] { return box.text("run/metrics.jsonl").find('\n') != std::string::npos; }));
  const auto workers = processes_with("--node b");
  REQUIRE(workers.size() == 1);
  box.signal_alone(workers[0], SIGKILL);
  const Ended run = box.wait(pid, seconds(25));
  INFO(run.output);
  CHECK(run.code == 1);
  const auto result = box.json("run/result.json");
  CHECK(result["cause"]["node"] == "b");
  CHECK(result["cause"]["kind"] == "worker_lost");
}

TEST_CASE("A host that is stopped ends the job within its lease and a second, named as stopped") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const std::string manifest = box.manifest("local", "timeouts: {lease: 2s}\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--cluster", manifest});
  REQUIRE(eventually([&] { return box.text("run/metrics.jsonl").find('\n') != std::string::npos; }));
  const auto hosts = host_pids(box);
  REQUIRE(hosts.size() == 2);
  const auto before = std::chrono::steady_clock::now();
  box.signal_alone(hosts[1], SIGSTOP);
  const Ended run = box.wait(pid, seconds(25));
  INFO(run.output);
  CHECK(run.code == 1);
  // The job's end and the end of the programs are in it too.
  CHECK(std::chrono::steady_clock::now() - before < seconds(2 + 1 + 4));
  const auto result = box.json("run/result.json");
  CHECK(result["cause"]["kind"] == "host_stopped");
  CHECK(result["cause"]["node"] == "b");
  CHECK(std::string(result["cause"]["message"]).find("SIGSTOP") != std::string::npos);
  for (int host : hosts) CHECK_FALSE(alive(host));
}

TEST_CASE("Missing workers are named by node and address after the register time") {
  Sandbox box;
  const std::string manifest = box.manifest("manual", "timeouts: {register: 4s}\n");
  const int pid = box.start({"run", box.path("job.yaml"), "--run-dir", box.path("run"), "--cluster", manifest});
  REQUIRE(eventually([&] { return box.output(pid).find("waiting for workers") != std::string::npos; }));
  const int worker = box.start({"worker", "--cluster", manifest, "--node", "a"});
  const Ended run = box.wait(pid);
  INFO(run.output);
  CHECK(run.code == 2);
  CHECK(run.output.find("node b at 127.0.0.1") != std::string::npos);
  CHECK(run.output.find("node a at") == std::string::npos);
  CHECK_FALSE(fs::exists(box.path("run")));
  box.signal(worker, SIGTERM);
  box.wait(worker);
}

TEST_CASE("A worker that is there before the driver's first start waits for the cluster's secrets and joins") {
  Sandbox box;
  const std::string manifest = box.manifest("manual");
  const int worker = box.start({"worker", "--cluster", manifest, "--node", "a"});
  REQUIRE(eventually([&] { return box.output(worker).find("worker of node a") != std::string::npos; }));
  REQUIRE_FALSE(fs::exists(box.path("cluster.secrets")));
  const int driver = start_driver(box, manifest);
  const auto joined = [&] {
    const auto status = status_of(box, manifest);
    if (!status.is_object()) return false;
    for (const auto& node : status["workers"])
      if (node["node"] == "a") return node.value("present", false);
    return false;
  };
  CHECK(eventually(joined, seconds(20)));
  INFO(box.output(worker));
  box.signal(worker, SIGTERM);
  box.signal(driver, SIGTERM);
  CHECK(box.wait(worker).code == 0);
  CHECK(box.wait(driver).code == 0);
}

TEST_CASE("A driver takes jobs, tells their status and logs, and cancels them") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const std::string manifest = box.manifest("local");
  const int driver = start_driver(box, manifest);
  const Ended submitted =
      box.run({"submit", box.path("job.yaml"), "--cluster", manifest, "--run-dir", box.path("run"), "--json"});
  INFO(submitted.output);
  REQUIRE(submitted.code == 0);
  const std::string id = nlohmann::json::parse(submitted.output)["job"];
  REQUIRE(eventually([&] { return box.text("run/metrics.jsonl").find('\n') != std::string::npos; }));
  const auto status = status_of(box, manifest);
  REQUIRE(status["jobs"].size() == 1);
  CHECK(status["jobs"][0]["job"] == id);
  CHECK(status["jobs"][0]["hosts"].size() == 2);
  CHECK(status["workers"].size() == 2);
  const Ended logs = box.run({"logs", id, "--cluster", manifest, "--group", "text"});
  CHECK(logs.output.find("fake host of slot 1") != std::string::npos);
  const int following = box.start({"logs", id, "--cluster", manifest, "--follow"});
  CHECK(box.run({"cancel", id, "--cluster", manifest}).code == 0);
  CHECK(box.wait(following).code == 0);
  REQUIRE(eventually([&] { return fs::exists(box.path("run/result.json")); }));
  CHECK(box.json("run/result.json")["cause"]["kind"] == "cancelled");
  CHECK(box.run({"cancel", "nosuchid", "--cluster", manifest}).code == 2);
  box.signal_alone(driver, SIGTERM);
  CHECK(box.wait(driver).code == 0);
  CHECK(eventually([&] { return processes_with(manifest).empty(); }, seconds(10)));
}

TEST_CASE("submit --wait ends with the job's exit code, and with 4 when the driver is lost") {
  Sandbox box;
  const std::string manifest = box.manifest("local");
  const int driver = start_driver(box, manifest);
  const Ended done =
      box.run({"submit", box.path("job.yaml"), "--cluster", manifest, "--run-dir", box.path("run"), "--wait"});
  INFO(done.output);
  CHECK(done.code == 0);
  box.script("steps 100000\nstep_ms 20\n");
  const int waiting =
      box.start({"submit", box.path("job.yaml"), "--cluster", manifest, "--run-dir", box.path("run2"), "--wait"});
  REQUIRE(eventually([&] { return box.text("run2/metrics.jsonl").find('\n') != std::string::npos; }));
  box.signal_alone(driver, SIGKILL);
  const Ended lost = box.wait(waiting);
  INFO(lost.output);
  CHECK(lost.code == 4);
}

TEST_CASE("submit --wait that is interrupted leaves the job running and says how to cancel it") {
  Sandbox box;
  box.script("steps 100000\nstep_ms 20\n");
  const std::string manifest = box.manifest("local");
  start_driver(box, manifest);
  const int waiting =
      box.start({"submit", box.path("job.yaml"), "--cluster", manifest, "--run-dir", box.path("run"), "--wait"});
  REQUIRE(eventually([&] { return box.text("run/metrics.jsonl").find('\n') != std::string::npos; }));
  box.signal_alone(waiting, SIGINT);
  const Ended ended = box.wait(waiting);
  CHECK(ended.code == 130);
  CHECK(ended.output.find("troupe cancel ") != std::string::npos);
  CHECK(status_of(box, manifest)["jobs"][0]["phase"] == "running");
}

TEST_CASE("A wrong token and a wrong certificate are refused, of workers and of clients") {
  Sandbox box;
  const std::string manifest = box.manifest("manual");
  start_driver(box, manifest);
  fs::copy(box.path("cluster.secrets"), box.path("forged"), fs::copy_options::recursive);
  const std::string address =
      nlohmann::json::parse(box.run({"status", "--cluster", manifest, "--json"}).output, nullptr, false).is_object()
          ? box.text("cluster.yaml").substr(box.text("cluster.yaml").find("127.0.0.1:"), 15)
          : "";
  REQUIRE_FALSE(address.empty());
  const std::string target = address.substr(0, address.find('"'));
  SECTION("token") {
    box.write("forged/token", "0123456789abcdef\n");
    const Ended worker = box.run({"worker", "--driver", target, "--node", "a", "--secrets", box.path("forged")});
    INFO(worker.output);
    CHECK(worker.code == 2);
    CHECK(worker.output.find("token") != std::string::npos);
    const Ended client = box.run({"status", "--driver", target, "--secrets", box.path("forged")});
    CHECK(client.code == 2);
    CHECK(client.output.find("token") != std::string::npos);
  }
  SECTION("certificate") {
    // Another cluster's certificate: the client must refuse the driver before it shows its token.
    Sandbox other;
    const std::string foreign = other.manifest("manual");
    start_driver(other, foreign);
    fs::copy_file(other.path("cluster.secrets/driver.crt"), box.path("forged/driver.crt"),
                  fs::copy_options::overwrite_existing);
    CHECK(box.run({"status", "--driver", target, "--secrets", box.path("forged")}).code == 3);
  }
  CHECK_FALSE(status_of(box, manifest)["workers"][0]["present"]);
}

TEST_CASE("A control port that is taken is refused") {
  Sandbox box;
  const std::string manifest = box.manifest("manual");
  start_driver(box, manifest);
  const Ended second = box.run({"driver", "--cluster", manifest, "--journal", box.path("journal2")});
  CHECK(second.code == 2);
  CHECK(second.output.find("cannot listen on 127.0.0.1:") != std::string::npos);
}
