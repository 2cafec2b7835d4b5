#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "base/config/job_spec_parser.h"
#include "driver/plan/job_plan.h"

using namespace troupe;
namespace fs = std::filesystem;

namespace {

const std::string kConfigs = std::string(TROUPE_SOURCE_DIR) + "/configs";

/// The cluster that a job's first line names.
std::string cluster_of(const fs::path& job) {
  std::ifstream in(job);
  std::string line;
  std::getline(in, line);
  std::smatch match;
  if (!std::regex_search(line, match, std::regex("clusters/([a-z0-9-]+\\.yaml)"))) FAIL(job << " names no cluster");
  return kConfigs + "/clusters/" + match[1].str();
}

/// "qwen2.5-vl-3b-16gpu" -> 16
size_t gpus_of(const fs::path& job) {
  std::smatch match;
  const std::string name = job.stem().string();
  if (!std::regex_search(name, match, std::regex("-([0-9]+)gpu$"))) FAIL(job << " names no number of GPUs");
  return std::stoul(match[1].str());
}

}  // namespace

TEST_CASE("every job of configs plans on its cluster and uses all of its GPUs") {
  size_t jobs = 0;
  for (const auto& entry : fs::directory_iterator(kConfigs + "/jobs")) {
    INFO(entry.path());
    ++jobs;
    const auto spec = load_job_spec(entry.path().string(), {}, {});
    if (!spec.ok()) FAIL(spec.error().message);
    CHECK(spec->name == entry.path().stem().string());
    CHECK(spec->warnings.empty());
    const auto manifest = load_manifest(cluster_of(entry.path()), {});
    if (!manifest.ok()) FAIL(manifest.error().message);
    const auto config = read_model_config(spec->model.path);
    if (!config.ok()) FAIL(config.error().message);
    const auto plan = plan_job(*spec, &*manifest, *config, {0, 2});
    if (!plan.ok()) FAIL(plan.error().message);
    CHECK(plan->slots.size() == gpus_of(entry.path()));
    // Room for activations: a tenth of the device at least.
    for (size_t s = 0; s < plan->slots.size(); ++s) CHECK(plan->slot_bytes[s] * 10 <= plan->slots[s].memory_bytes * 9);
  }
  CHECK(jobs == 13);
}

TEST_CASE("every cluster of configs is a valid manifest") {
  for (const auto& entry : fs::directory_iterator(kConfigs + "/clusters")) {
    if (entry.is_directory()) continue;  // the secrets of a cluster that was started
    const auto manifest = load_manifest(entry.path().string(), {});
    if (!manifest.ok()) FAIL(manifest.error().message);
    CHECK_FALSE(manifest->nodes.empty());
  }
}

TEST_CASE("32B and 72B do not fit one GPU, and 72B leaves 8 GiB of each of eight") {
  const auto planned = [](const std::string& job, const std::string& cluster, int ranks) {
    const std::string n = std::to_string(ranks);
    const auto spec = load_job_spec(kConfigs + "/jobs/" + job,
                                    {"groups.vision.mesh={sp: " + n + "}", "groups.text.mesh={tp: " + n + "}"}, {});
    if (!spec.ok()) FAIL(spec.error().message);
    const auto manifest = load_manifest(kConfigs + "/clusters/" + cluster, {});
    if (!manifest.ok()) FAIL(manifest.error().message);
    return plan_job(*spec, &*manifest, *read_model_config(spec->model.path), {0, 2});
  };
  CHECK(planned("qwen2.5-vl-32b-8gpu.yaml", "one-gpu.yaml", 1)
            .error()
            .message.find("has 79.0 GiB, its ranks need 249.2 GiB") != std::string::npos);
  CHECK(planned("qwen2.5-vl-72b-16gpu.yaml", "one-gpu.yaml", 1)
            .error()
            .message.find("has 79.0 GiB, its ranks need 547.0 GiB") != std::string::npos);
  const auto eight = planned("qwen2.5-vl-72b-16gpu.yaml", "one-node-8gpu.yaml", 8);
  if (!eight.ok()) FAIL(eight.error().message);
  CHECK(static_cast<double>(eight->slot_bytes[0]) / (1 << 30) == Approx(70.84).margin(0.01));
}
