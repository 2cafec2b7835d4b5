#include "base/config/manifest.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {
std::string complaint(const std::string& text) {
  const auto m = parse_manifest(text, "c.yaml", {});
  return m.ok() ? "(accepted)" : m.error().message;
}
const std::string kNode = "nodes: [{name: a, address: h1, devices: {cuda: 0-7}}]\n";
const std::string kControl = "network: {control: 'h1:7717'}\n";
}  // namespace

TEST_CASE("a manifest names nodes, devices and addresses") {
  const auto m = parse_manifest(
      "launch: manual\nnetwork: {control: '10.0.0.1:7717'}\nenv: {NCCL_DEBUG: WARN, A: "
      "'${HOME}/x'}\ntimeouts: {register: 2m, lease: 3}\n"
      "nodes:\n  - {name: a, address: 10.0.0.1, devices: {cuda: [0, 2, 3], memory_gib: 80}}\n  - {name: b, address: "
      "10.0.0.2, devices: {cpu: 4, threads: 2}}\n",
      "/c/lab.yaml", {{"HOME", "/home/ada"}});
  if (!m.ok()) FAIL(m.error().message);
  CHECK(m->nodes[0].cuda == std::vector<int>{0, 2, 3});
  CHECK(m->nodes[0].memory_bytes == int64_t{80} << 30);
  CHECK(m->nodes[1].cpu_slots == 4);
  CHECK(m->nodes[1].threads == 2);
  CHECK(m->env.at("A") == "/home/ada/x");
  CHECK(m->timeouts.register_worker == std::chrono::minutes(2));
  CHECK(m->timeouts.lease == std::chrono::seconds(3));
  CHECK(m->security == "token");
  CHECK(m->secrets_folder() == "/c/lab.secrets");
  REQUIRE(m->node("b") != nullptr);
  CHECK(m->node("c") == nullptr);
}

TEST_CASE("a local launch needs no addresses") {
  const auto m = parse_manifest("launch: local\nnodes: [{name: a, devices: {cpu: 2}}, {name: b, devices: {cpu: 2}}]\n",
                                "c.yaml", {});
  if (!m.ok()) FAIL(m.error().message);
  CHECK(m->nodes[1].address == "127.0.0.1");
  CHECK(m->control_address == "127.0.0.1:7717");
}

TEST_CASE("what is wrong with a manifest is named with its line") {
  CHECK(complaint(kNode + kControl) == "(accepted)");
  CHECK(complaint(kControl) ==
        "c.yaml:1: key 'nodes': is missing or no list; valid: [{name: a, address: HOST, devices: {cuda: 0-7}}, ...]");
  CHECK(complaint(kNode) ==
        "c.yaml:1: key 'network.control': is missing; valid: ADDRESS:PORT that the driver listens on and every worker "
        "reaches");
  CHECK(complaint(kNode + "network: {control: h1}\n") ==
        "c.yaml:2: key 'network.control': value 'h1' is not valid; valid: ADDRESS:PORT with a port from 0 to 65535");
  CHECK(complaint("nodes: [{address: h, devices: {cuda: 0}}]\n" + kControl)
            .find("c.yaml:1: key 'nodes[0].name': value '' is not valid") == 0);
  CHECK(complaint("nodes: [{name: a, devices: {cuda: 0}}]\n" + kControl) ==
        "c.yaml:1: key 'nodes[0].address': is missing; valid: a host name or IP address");
  CHECK(complaint("nodes: [{name: a, address: h}]\n" + kControl) ==
        "c.yaml:1: key 'nodes[0].devices': is missing; valid: {cuda: 0-7} or {cpu: 4, threads: 2}");
  CHECK(complaint("nodes: [{name: a, address: h, devices: {cuda: 3-1}}]\n" + kControl) ==
        "c.yaml:1: key 'nodes[0].devices.cuda': value '3-1' is not valid; valid: device numbers, each once, such as "
        "0-7 or [0, 2, 3]");
  CHECK(complaint("nodes: [{name: a, address: h, devices: {gpu: 1}}]\n" + kControl)
            .find("key 'nodes[0].devices.gpu': unknown key") != std::string::npos);
  CHECK(complaint("nodes:\n- {name: a, address: h, devices: {cuda: 0}}\n- {name: a, address: h, devices: {cuda: 0}}\n" +
                  kControl) == "c.yaml:3: key 'nodes[1].name': value 'a' occurs twice; valid: a name for each node");
}

TEST_CASE("launchers and securities that are not built are refused by name") {
  for (const char* launch : {"slurm", "kubernetes", "ssh"})
    CHECK(complaint(kNode + kControl + "launch: " + launch + "\n") ==
          "c.yaml:3: key 'launch': value '" + std::string(launch) +
              "' is not built yet; valid: local, manual (start `troupe worker` on each node yourself)");
  CHECK(complaint(kNode + kControl + "security: mtls\n") ==
        "c.yaml:3: key 'security': value 'mtls' is not built yet; valid: token (a token inside TLS)");
  CHECK(complaint("nodes: from_slurm\n" + kControl) ==
        "c.yaml:1: key 'nodes': value 'from_slurm' is not built yet; valid: a list of nodes");
}

TEST_CASE("timeouts are durations, and a lease outlasts two heartbeats") {
  CHECK(complaint(kNode + kControl + "timeouts: {lease: soon}\n") ==
        "c.yaml:3: key 'timeouts.lease': value 'soon' is not valid; valid: a duration such as 500ms, 30s or 2m (a "
        "plain number is seconds)");
  CHECK(complaint(kNode + kControl + "timeouts: {lease: 1s}\n") ==
        "c.yaml:3: key 'timeouts.lease': value 1000 ms must be at least twice the heartbeat of 1000 ms");
}

TEST_CASE("lists of numbers are ranges without repeats") {
  CHECK(parse_index_ranges("0-2,5") == std::vector<int>{0, 1, 2, 5});
  CHECK(parse_index_ranges("7") == std::vector<int>{7});
  for (const char* bad : {"", "a", "1-", "-1", "3-1", "1,1", "0-2,1", "0-99999999"})
    CHECK(parse_index_ranges(bad).empty());
}
