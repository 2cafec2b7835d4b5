#include "driver/plan/job_plan.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/config/job_spec_parser.h"

using namespace troupe;

namespace {

const std::string kModels = std::string(TROUPE_SOURCE_DIR) + "/configs/models/";

JobSpec spec_of(const std::string& model, const std::string& rest) {
  auto s = parse_job_spec("name: j\nmodel: {path: '" + kModels + model +
                              "', init: random, dtype: bf16}\ndata: {synthetic: {images: 1}}\n" + rest,
                          "j.yaml");
  if (!s.ok()) FAIL(s.error().message);
  return *s;
}

Result<JobPlan> plan(const JobSpec& spec, const Manifest* manifest = nullptr, Machine machine = {0, 2}) {
  const auto config = read_model_config(spec.model.path);
  if (!config.ok()) return config.error();
  return plan_job(spec, manifest, *config, machine);
}

const char* kSteps = "training: {steps: 1, global_batch: 4}\n";
constexpr int64_t kVision3b = 631975680 + 36708608, kText3b = 3085938688;

}  // namespace

TEST_CASE("memory of a rank follows dtype, sharding and what is trained") {
  const auto whole = plan(spec_of("qwen2.5-vl-3b", kSteps));
  if (!whole.ok()) FAIL(whole.error().message);
  CHECK(whole->parameters == kVision3b + kText3b);
  const RankMemory& text = whole->groups[1].ranks[0];
  CHECK(text.parameters == kText3b);
  CHECK(text.weights_bytes == 2 * kText3b);
  CHECK(text.gradients_bytes == 4 * kText3b);
  CHECK(text.optimizer_bytes == 12 * kText3b);
  CHECK(whole->slot_bytes[0] == 18 * (kText3b + kVision3b));

  const auto split = plan(spec_of(
      "qwen2.5-vl-3b",
      std::string(
          "groups: {vision: {mesh: {sp: 4}}, text: {mesh: {dp: 2}, zero: 0}}\ncomponents: {merger: {train: false}}\n") +
          kSteps));
  if (!split.ok()) FAIL(split.error().message);
  const RankMemory& vision = split->groups[0].ranks[3];
  CHECK(vision.parameters == kVision3b);
  const int64_t trained = 631975680;
  CHECK(vision.gradients_bytes == 4 * (trained + trained / 4));
  CHECK(vision.optimizer_bytes == 12 * (trained / 4));
  CHECK(split->groups[0].trained_parameters == 631975680);
  CHECK(split->groups[1].ranks[0].optimizer_bytes == 12 * kText3b);
}

TEST_CASE("tensor parallel ranks add up to the whole model, replicated parts and shared heads counted on each") {
  const auto p = plan(spec_of("qwen2.5-vl-3b", std::string("groups: {vision: {}, text: {mesh: {tp: 2}}}\n") + kSteps));
  if (!p.ok()) FAIL(p.error().message);
  int64_t sum = 0;
  for (const RankMemory& m : p->groups[1].ranks) sum += m.parameters;
  const int64_t norms = (2 * 36 + 1) * 2048;
  CHECK(sum == kText3b + norms);
}

TEST_CASE("heads that a mesh does not divide are refused by component") {
  const auto p = plan(spec_of("qwen2.5-vl-7b", std::string("groups: {vision: {}, text: {mesh: {tp: 8}}}\n") + kSteps));
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().message.find(
            "key 'groups.text.mesh.tp': value 8 does not divide the 28 attention heads of component text") !=
        std::string::npos);
}

TEST_CASE("a device that is too small is refused with the numbers") {
  const auto m =
      parse_manifest("launch: local\nnodes: [{name: a, devices: {cuda: 0, memory_gib: 79}}]\n", "c.yaml", {});
  REQUIRE(m.ok());
  const auto p = plan(spec_of("qwen2.5-vl-7b", kSteps), &*m);
  REQUIRE_FALSE(p.ok());
  CHECK(p.error().message.find("slot a:0 (cuda:0) has 79.0 GiB, its ranks need 139.0 GiB before any activation") == 0);
}

TEST_CASE("CPU slots of this machine are refused by the sum of their ranks, and only when that does not fit") {
  const JobSpec spec = spec_of(
      "qwen2.5-vl-3b", std::string("groups: {vision: {mesh: {sp: 2}}, text: {}}\nplacement: disjoint\n") + kSteps);
  const auto known = plan(spec);
  REQUIRE(known.ok());
  int64_t sum = 0;
  for (const int64_t bytes : known->slot_bytes) sum += bytes;
  const auto fits = plan(spec, nullptr, {0, 2, sum});
  REQUIRE(fits.ok());
  CHECK(
      render_plan(*fits, spec).find("all slots together take 69.17 GiB of 69.17 GiB that this machine has available") !=
      std::string::npos);
  CHECK(render_plan(*known, spec).find("how much memory a device has is not known") != std::string::npos);
  const auto refused = plan(spec, nullptr, {0, 2, sum - 1});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find(
            "this machine has 69.2 GiB of memory available, the ranks on its CPU slots need 69.2 GiB before any "
            "activation (vision/0: weights 1.2 GiB") == 0);
}

TEST_CASE("a plan is shown as a table with the effective batch, and as JSON") {
  const JobSpec spec = spec_of("qwen2.5-vl-3b",
                               "groups: {vision: {mesh: {sp: 2}}, text: {mesh: {dp: 2, tp: 2}}}\nplacement: "
                               "disjoint\ntraining: {steps: 1, global_batch: 12, microbatch: {samples: 2}}\n");
  const auto p = plan(spec);
  if (!p.ok()) FAIL(p.error().message);
  const std::string text = render_plan(*p, spec);
  CHECK(text.find("job j: 3.75 B parameters, bf16, 6 slots on 1 node, disjoint\nbatch: 12 samples a step = 2 text "
                  "lanes x 3 units x 2 samples\n") == 0);
  CHECK(text.find("vision+merger  sp=2") != std::string::npos);
  CHECK(text.find("local:2-5") != std::string::npos);
  CHECK(text.back() == '\n');
  const nlohmann::json j = plan_json(*p, spec);
  CHECK(j["groups"][1]["mesh"]["tp"] == 2);
  CHECK(j["groups"][1]["ranks"][3]["slot"] == 5);
  CHECK(j["slots"][2]["actors"] == nlohmann::json{"text/0"});
}
